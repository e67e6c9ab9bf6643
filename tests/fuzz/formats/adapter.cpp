// libFuzzer target. Seeds: tests/fuzz/corpus/adapter, made by make_corpus.py.
#include <cstddef>
#include <cstdint>

#include "../../formats/parsers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    hearth::test::read_adapter({reinterpret_cast<const char*>(data), size});
  } catch (const hearth::Error&) {  // the answer to a bad file
  }
  return 0;
}
