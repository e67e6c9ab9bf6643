// Other names for models, as models.toml gives them: `name = "target"` at the top, `alias = "name"` in a model's table.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::hub {

struct Alias {
  std::string name, target;
  int line = 0;
};

// In file order; none where the file is absent. With `name` those of that name alone, whatever stands beside them.
// Throws Error{invalid_argument} "<file>:<line>: ..." for what is no TOML and for a name or an alias that is no string
// or empty, Error{io}.
std::vector<Alias> read_aliases(const std::filesystem::path& file, const std::string& name = {});

}  // namespace hearth::hub
