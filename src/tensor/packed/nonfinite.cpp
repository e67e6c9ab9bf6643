#include <cmath>

#include "tensor/packed/codecs.h"

namespace hearth {
namespace {

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

int64_t count_affine(std::span<const std::byte> scales, DType type) {
  int64_t bad = 0;
  for (size_t i = 0; i < scales.size() / size_of(type); ++i)
    bad += !std::isfinite(packed::load_scale(scales.data(), type, static_cast<int64_t>(i)));
  return bad;
}

}  // namespace

int64_t count_nonfinite_scales(const PackedTensor& w) {
  if (w.format.codec == Codec::affine)
    return count_affine(w.scales, w.format.scale_type) + count_affine(w.biases, w.format.scale_type);
  const Factors at = factors_of(w.format.codec);
  if (at.first < 0) return 0;
  const auto bytes = static_cast<size_t>(packed::info_of(w.format.codec).bytes);
  int64_t bad = 0;
  for (size_t begin = 0; begin < w.data.size(); begin += bytes) {
    const std::byte* block = w.data.data() + begin;
    bad += !std::isfinite(packed::load_f16(block + at.first));
    if (at.second >= 0) bad += !std::isfinite(packed::load_f16(block + at.second));
  }
  return bad;
}

}  // namespace hearth
