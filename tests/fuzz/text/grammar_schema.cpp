// any JSON as a schema ends with a grammar that keeps its promises or with a typed error.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "grammar_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  std::optional<json::Value> schema;
  try {
    schema = json::parse(source, "fuzz");
  } catch (const Error&) {  // not JSON
    return 0;
  }
  return text::fuzz_grammar(source,
                            [&] { return text::compile_json_schema(*schema, {.any_whitespace = size % 2 == 0}); });
}
