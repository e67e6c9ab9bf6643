// Formats whose 4-bit codes index a table: x = d * t[q] (GGUF IQ4_NL, IQ4_XS, MXFP4).
#include <bit>

#include "tensor/packed/codecs.h"

namespace hearth::packed {
namespace {

// The non-linear 4-bit levels of IQ4 (llama.cpp, pull request 5590).
constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// e2m1 values, doubled so that they are whole (OCP Microscaling Formats 1.0, table 5).
constexpr float kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void lookup_nibbles(const std::byte* qs, const float* table, float d, float* out) {
  for (int j = 0; j < 16; ++j) {
    out[j] = d * table[byte_at(qs, j) & 15];
    out[j + 16] = d * table[byte_at(qs, j) >> 4];
  }
}

}  // namespace

// d, qs[16].
void decode_iq4_nl(const std::byte* block, float* out) { lookup_nibbles(block + 2, kIq4, load_f16(block), out); }

// d, scales_h u16, scales_l[4], qs[128]: 8 groups of 32; scale = d (6-bit - 32).
void decode_iq4_xs(const std::byte* block, float* out) {
  const float d = load_f16(block);
  uint16_t high;
  std::memcpy(&high, block + 2, 2);
  for (int i = 0; i < 8; ++i) {
    const int low = byte_at(block, 4 + i / 2) >> 4 * (i % 2) & 15;
    const float scale = d * static_cast<float>((low | (high >> 2 * i & 3) << 4) - 32);
    lookup_nibbles(block + 8 + 16 * i, kIq4, scale, out + 32 * i);
  }
}

// e8m0 exponent, qs[16]. The scale is 2^(e - 128), half of the format's because the table is doubled.
void decode_mxfp4(const std::byte* block, float* out) {
  const uint32_t e = byte_at(block, 0);
  const float d = std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  lookup_nibbles(block + 1, kE2m1Doubled, d, out);
}

void decode_f32(const std::byte* p, float* out) { std::memcpy(out, p, 4); }
void decode_f16(const std::byte* p, float* out) { *out = load_f16(p); }
void decode_bf16(const std::byte* p, float* out) {
  bf16 h;
  std::memcpy(&h, p, 2);
  *out = to_float(h);
}

}  // namespace hearth::packed
