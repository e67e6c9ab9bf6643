// models.toml in the settings folder: aliases at the top, a table a model for what holds for that model alone (spec
// server 9).
//
//   small = "org/name"            # an alias
//
//   ["org/name"]                  # or "org/name:file.gguf", a path, an alias
//   alias = "work"                # another name for it
//   default = true                # what serve without a name begins with
//   pinned = true                 # stays loaded
//   ttl = "30m"                   # idle time until it is unloaded
//   context = 8192                # and the other flags of kModelSettings
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/serve_flags.h"
#include "hub/aliases.h"
#include "hub/store.h"
#include "hub/toml.h"

namespace hearth::cli {

// What a table may hold: ours, and flags that go to the model's worker.
inline constexpr std::array kModelSettings = {
    Flag{.name = "alias", .kind = ValueKind::text},
    Flag{.name = "default"},
    Flag{.name = "pinned"},
    Flag{.name = "ttl", .kind = ValueKind::duration, .min = 0, .max = 1e9},
    engine_flag("context"),
    engine_flag("kv"),
    row_flag("batch"),
    row_flag("prompt-cache"),
    row_flag("temperature"),
    row_flag("top-p"),
    row_flag("top-k"),
    row_flag("min-p"),
    row_flag("max-tokens"),
};

struct ModelSettings {
  std::string table;
  int line = 0;                // of its first setting
  std::filesystem::path path;  // of the model; empty: it was not here at the start
  bool is_default = false, pinned = false;
  std::optional<std::chrono::milliseconds> ttl;
  std::vector<std::string> worker_words;  // "--context", "8192", ...
};

class ModelsFile {
 public:
  // Absent: no settings. Looks for the tables' models in the store. Throws Error{invalid_argument} "<file>:<line>: ..."
  // for a key that is not known (with the nearest one), a value that its flag does not take, an alias that is no name,
  // that two models have, or that is another model's name; Error{io}.
  static ModelsFile read(const hub::Store& store);

  // The table of that model; null: none.
  const ModelSettings* of(const hub::FoundModel& model) const;
  const ModelSettings* default_model() const;  // null: none is marked

  const std::vector<hub::Alias>& aliases() const { return aliases_; }
  const std::vector<std::string>& absent() const { return absent_; }  // a sentence for every table without a model here

 private:
  std::vector<ModelSettings> tables_;
  std::vector<hub::Alias> aliases_;
  std::vector<std::string> absent_;
};

}  // namespace hearth::cli
