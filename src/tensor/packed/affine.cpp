// The bit stream of affine rows (DESIGN 6): value k occupies bits k * bits ... of the little-endian row. Eight values
// fill exactly `bits` bytes, so one 64-bit word holds them whatever the width.
#include "base/error.h"
#include "tensor/packed/codecs.h"

namespace hearth::packed {
namespace {

template <int kBits>
void unpack(const std::byte* stream, int64_t count, uint8_t* q) {
  for (int64_t k = 0; k < count; k += 8, stream += kBits, q += 8) {
    uint64_t word = 0;
    std::memcpy(&word, stream, kBits);
    for (int j = 0; j < 8; ++j) q[j] = static_cast<uint8_t>(word >> j * kBits & ((1u << kBits) - 1));
  }
}

}  // namespace

void unpack_affine(const std::byte* stream, int bits, int64_t count, uint8_t* q) {
  switch (bits) {
    case 2: return unpack<2>(stream, count, q);
    case 3: return unpack<3>(stream, count, q);
    case 4: return unpack<4>(stream, count, q);
    case 5: return unpack<5>(stream, count, q);
    case 6: return unpack<6>(stream, count, q);
    case 8: return static_cast<void>(std::memcpy(q, stream, static_cast<size_t>(count)));
  }
  HEARTH_CHECK(false, "affine rows of {} bits", bits);
}

float load_scale(const std::byte* p, DType type, int64_t index) {
  float value;
  switch (type) {
    case DType::f32: decode_f32(p + 4 * index, &value); break;
    case DType::f16: decode_f16(p + 2 * index, &value); break;
    default: decode_bf16(p + 2 * index, &value);
  }
  return value;
}

}  // namespace hearth::packed
