#include "tensor/dtype.h"

namespace hearth {

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f64: return "f64";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::i32: return "i32";
    case DType::u32: return "u32";
    case DType::i64: return "i64";
    case DType::boolean: return "bool";
  }
  return "unknown";
}

size_t size_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::f64:
    case DType::i64: return 8;
    default: return 4;
  }
}

}  // namespace hearth
