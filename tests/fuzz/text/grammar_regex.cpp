// any bytes as a regular expression end with a grammar that keeps its promises or with a typed error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "grammar_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  return hearth::text::fuzz_grammar(source, [&] { return hearth::text::compile_regex(source); });
}
