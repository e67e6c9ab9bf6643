// Super-blocks of 256 values whose group scales are small integers times one f16 (GGUF Q2_K .. Q6_K; spec/models.md
// 2.2, item 9). A group's scale is d * sc in fp32, its bias -(dmin * mn): the products of the definition, in its order.
#include "tensor/packed/codecs.h"

namespace hearth::packed {
namespace {

// The eight pairs of 6-bit scales and minima of Q4_K and Q5_K, from their 12 bytes.
void scale_min(const std::byte* b, int i, int& sc, int& mn) {
  if (i < 4) {
    sc = byte_at(b, i) & 63;
    mn = byte_at(b, i + 4) & 63;
  } else {
    sc = (byte_at(b, i + 4) & 15) | byte_at(b, i - 4) >> 6 << 4;
    mn = byte_at(b, i + 4) >> 4 | byte_at(b, i) >> 6 << 4;
  }
}

void scales_of_eight(const std::byte* block, float* scale, float* bias) {
  const float d = load_f16(block), dmin = load_f16(block + 2);
  for (int i = 0; i < 8; ++i) {
    int sc, mn;
    scale_min(block + 4, i, sc, mn);
    scale[i] = d * static_cast<float>(sc);
    bias[i] = -(dmin * static_cast<float>(mn));
  }
}

// Sub-blocks 2i and 2i + 1 of 32 values are the low and the high nibbles of bytes 32 i ...
void nibbles_of_eight(const std::byte* qs, uint8_t* q) {
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 32; ++l) {
      q[64 * i + l] = byte_at(qs, 32 * i + l) & 15;
      q[64 * i + 32 + l] = byte_at(qs, 32 * i + l) >> 4;
    }
}

// Per half of 128 values, quarter c takes bits 2c, 2c + 1 of the half's 32 bytes.
void pairs_of_bits(const std::byte* qs, uint8_t* q) {
  for (int half = 0; half < 2; ++half)
    for (int c = 0; c < 4; ++c)
      for (int l = 0; l < 32; ++l)
        q[128 * half + 32 * c + l] = static_cast<uint8_t>(byte_at(qs, 32 * half + l) >> 2 * c & 3);
}

}  // namespace

// scales[16] (low nibble scale, high nibble minimum), qs[64], d, dmin.
void unpack_q2_k(const std::byte* block, uint8_t* q, float* scale, float* bias) {
  const float d = load_f16(block + 80), dmin = load_f16(block + 82);
  for (int i = 0; i < 16; ++i) {
    scale[i] = d * static_cast<float>(byte_at(block, i) & 15);
    bias[i] = -(dmin * static_cast<float>(byte_at(block, i) >> 4));
  }
  pairs_of_bits(block + 16, q);
}

// hmask[32], qs[64], scales[12], d. Bit i of hmask[l] is bit 2 of value l of sub-block i of 32; x = d (sc - 32) (q -
// 4). Scale i has its low nibble in byte i % 8 (low half for i < 8) and its two high bits in byte 8 + i % 4.
void unpack_q3_k(const std::byte* block, uint8_t* q, float* scale, float*) {
  const float d = load_f16(block + 108);
  const std::byte* b = block + 96;
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? byte_at(b, i) & 15 : byte_at(b, i - 8) >> 4;
    const int high = byte_at(b, 8 + i % 4) >> 2 * (i / 4) & 3;
    scale[i] = d * static_cast<float>((low | high << 4) - 32);
  }
  pairs_of_bits(block + 32, q);
  for (int i = 0; i < 8; ++i)
    for (int l = 0; l < 32; ++l)
      q[32 * i + l] = static_cast<uint8_t>(q[32 * i + l] | (byte_at(block, l) >> i & 1) << 2);
}

// d, dmin, scales[12], qs[128].
void unpack_q4_k(const std::byte* block, uint8_t* q, float* scale, float* bias) {
  scales_of_eight(block, scale, bias);
  nibbles_of_eight(block + 16, q);
}

// d, dmin, scales[12], qh[32], qs[128]; bit i of qh[l] is bit 4 of value l of sub-block i.
void unpack_q5_k(const std::byte* block, uint8_t* q, float* scale, float* bias) {
  scales_of_eight(block, scale, bias);
  nibbles_of_eight(block + 48, q);
  for (int i = 0; i < 8; ++i)
    for (int l = 0; l < 32; ++l)
      q[32 * i + l] = static_cast<uint8_t>(q[32 * i + l] | (byte_at(block, 16 + l) >> i & 1) << 4);
}

// ql[128], qh[64], int8 scales[16], d.
void unpack_q6_k(const std::byte* block, uint8_t* q, float* scale, float*) {
  const float d = load_f16(block + 208);
  for (int i = 0; i < 16; ++i) scale[i] = d * static_cast<float>(static_cast<int8_t>(byte_at(block, 192 + i)));
  for (int half = 0; half < 2; ++half) {
    const std::byte* ql = block + 64 * half;
    const std::byte* qh = block + 128 + 32 * half;
    uint8_t* out = q + 128 * half;
    for (int l = 0; l < 32; ++l) {
      const int high = byte_at(qh, l), a = byte_at(ql, l), b = byte_at(ql, l + 32);
      out[l] = static_cast<uint8_t>((a & 15) | (high & 3) << 4);
      out[l + 32] = static_cast<uint8_t>((b & 15) | (high >> 2 & 3) << 4);
      out[l + 64] = static_cast<uint8_t>(a >> 4 | (high >> 4 & 3) << 4);
      out[l + 96] = static_cast<uint8_t>(b >> 4 | (high >> 6) << 4);
    }
  }
}

}  // namespace hearth::packed
