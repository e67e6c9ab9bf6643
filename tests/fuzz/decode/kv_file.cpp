// libFuzzer target: any bytes as a stored prefix are read whole or end with Error{corrupt_file}. Seeds:
// tests/fuzz/corpus/kv_file, made by make_corpus.py.
#include <cstddef>
#include <cstdint>

#include "../../decode/kv_file_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    test::read_kv_file(bytes, test::kv_groups(graph::KvFormat::q4, 50));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt_file) __builtin_trap();
  }
  return 0;
}
