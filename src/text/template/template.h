// Templates in a subset of Jinja 3.1 (the language of Hugging Face's chat templates), rendered under hard limits.
// No files, imports, includes or host objects; a template sees only the values it is given.
#pragma once
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/byte_range.h"

namespace hearth::text::jinja {

struct Ast;

struct RenderLimits {
  int64_t steps = 2'000'000;
  int64_t output_bytes = 8 << 20;  // of the result, and of every string on the way
  // ChatTemplate: of the strings that it is given, which come on top of output_bytes.
  int64_t input_bytes = 8 << 20;
  int64_t range_max = 100'000;
  int recursion = 100;  // calls of macros and loops inside each other
  int64_t wall_ms = 250;
  std::function<int64_t()> now_ms;  // monotonic; empty: the steady clock
};

// What LimitError calls them; output_bytes and input_bytes are one.
inline constexpr std::string_view kStepsLimit = "template-steps", kOutputLimit = "template-output",
                                  kRangeLimit = "template-range", kRecursionLimit = "template-recursion",
                                  kTimeLimit = "template-time";

struct RenderInput {
  // Names and their values; keys are unique. Strings must be UTF-8.
  std::vector<std::pair<std::string, const json::Value*>> variables;
  // Strings among those values, as they lie in memory, that count as words of the template (see Rendered::quoted).
  std::vector<std::string_view> trusted;
  std::optional<std::tm> now;  // local civil time for strftime_now; absent: the template may not ask
};

struct Rendered {
  std::string text;
  std::vector<ByteRange> generation;  // made inside generation blocks
  // What the template did not write itself: all that comes from its input, through whatever filters and methods, but
  // for trusted strings. Ascending, disjoint. EncodeOptions::quoted takes it.
  std::vector<ByteRange> quoted;
};

class Template {
 public:
  // `name` appears in errors. Throws Error{invalid_argument}: "<name>, line <n>: <what>".
  Template(std::string_view source, std::string name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // Throws Error{invalid_argument} with the template's name and line when the template fails or calls raise_exception,
  // LimitError when it passes a limit. Any thread, any number at once.
  Rendered render(const RenderInput& input, const RenderLimits& limits = {}) const;

  const Ast& ast() const { return *ast_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<Ast> ast_;
};

}  // namespace hearth::text::jinja
