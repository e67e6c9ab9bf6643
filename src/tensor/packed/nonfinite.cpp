#include <cstring>

#include "tensor/packed/codecs.h"

namespace hearth {
namespace {

constexpr uint16_t kF16Exponent = 0x7c00, kBf16Exponent = 0x7f80;
constexpr uint32_t kF32Exponent = 0x7f800000;

// NaN or infinite: an exponent of ones alone.
template <class Bits>
bool is_bad(const std::byte* p, Bits exponent) {
  Bits bits;
  std::memcpy(&bits, p, sizeof bits);
  return (bits & exponent) == exponent;
}

template <class Bits>
int64_t count(std::span<const std::byte> bytes, Bits exponent) {
  int64_t bad = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) bad += is_bad(bytes.data() + at, exponent);
  return bad;
}

int64_t count(std::span<const std::byte> bytes, DType type) {
  if (type == DType::f32) return count(bytes, kF32Exponent);
  return count(bytes, type == DType::f16 ? kF16Exponent : kBf16Exponent);
}

// Where a block keeps its f16 factors; -1: none.
struct Factors {
  int first, second;
};

Factors factors_of(Codec codec) {
  switch (codec) {
    case Codec::q4_0:
    case Codec::q5_0:
    case Codec::q8_0:
    case Codec::iq4_nl:
    case Codec::iq4_xs: return {0, -1};
    case Codec::q4_1:
    case Codec::q5_1:
    case Codec::q4_k:
    case Codec::q5_k: return {0, 2};
    case Codec::q2_k: return {80, 82};
    case Codec::q3_k: return {108, -1};
    case Codec::q6_k: return {208, -1};
    default: return {-1, -1};
  }
}

// Rows [begin, end) of a part of a tensor with N rows.
std::span<const std::byte> rows(std::span<const std::byte> part, int64_t N, int64_t begin, int64_t end) {
  const size_t row = part.size() / static_cast<size_t>(N);
  return part.subspan(static_cast<size_t>(begin) * row, static_cast<size_t>(end - begin) * row);
}

}  // namespace

int64_t count_nonfinite(const PackedTensor& w, int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  const std::span<const std::byte> data = rows(w.data, w.N, begin, end);
  switch (w.format.codec) {
    case Codec::f32: return count(data, DType::f32);
    case Codec::f16: return count(data, DType::f16);
    case Codec::bf16: return count(data, DType::bf16);
    case Codec::affine:
      return count(rows(w.scales, w.N, begin, end), w.format.scale_type) +
             count(rows(w.biases, w.N, begin, end), w.format.scale_type);
    default: break;
  }
  const Factors at = factors_of(w.format.codec);
  if (at.first < 0) return 0;
  const auto bytes = static_cast<size_t>(packed::info_of(w.format.codec).bytes);
  int64_t bad = 0;
  for (size_t block = 0; block < data.size(); block += bytes) {
    bad += is_bad(data.data() + block + at.first, kF16Exponent);
    if (at.second >= 0) bad += is_bad(data.data() + block + at.second, kF16Exponent);
  }
  return bad;
}

int64_t count_nonfinite(const PackedTensor& w) { return count_nonfinite(w, 0, w.N); }

}  // namespace hearth
