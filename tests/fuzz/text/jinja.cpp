// R-13: any bytes as a template end with text or a typed error, without a clock.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "text/template/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  static const json::Value kMessages = json::parse(
      R"([{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "h\u00e9"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]}])",
      "seed");
  text::jinja::RenderLimits limits;
  limits.steps = 50'000;
  limits.now_ms = [] { return int64_t{0}; };
  text::jinja::RenderInput input;
  input.variables = {{"messages", &kMessages}, {"l", &kMessages}};
  try {
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    const auto rendered = text::jinja::Template(source, "fuzz").render(input, limits);
    size_t done = 0;
    for (const text::ByteRange& quoted : rendered.quoted) {
      if (quoted.begin < done || quoted.begin >= quoted.end || quoted.end > rendered.text.size()) __builtin_trap();
      done = quoted.end;
    }
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::invalid_argument) __builtin_trap();
  }
  return 0;
}
