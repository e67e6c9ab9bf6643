// libFuzzer target. Seeds: tests/fuzz/corpus/tokenizer_json, made by make_tokenizer_corpus.py.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "quoted_check.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::text;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    TokenizerTables tables = parse_tokenizer_json(file, "fuzz");
    const std::optional<int32_t> unk = tables.unk;
    const Tokenizer tokenizer(std::move(tables));
    for (const std::string_view text :
         {std::string_view("Hello, 12 wörld's \xff\n\n <s> 日本"), file.substr(0, 2000)}) {
      tokenizer.decode(tokenizer.encode(text, {.parse_special = size % 2 == 0}), size % 3 == 0);
      check_quoted(tokenizer, unk, text);
    }
  } catch (const hearth::Error&) {  // the answer to a bad file
  }
  return 0;
}
