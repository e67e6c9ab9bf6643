// Blocks of 32 values with one scale (GGUF Q4_0 Q4_1 Q5_0 Q5_1 Q8_0; spec/models.md 2.2, item 9).
#include "tensor/packed/codecs.h"

namespace hearth::packed {
namespace {

// Value j < 16 is the low nibble of byte j, value j + 16 its high nibble.
void split_nibbles(const std::byte* qs, uint8_t* q) {
  for (int j = 0; j < 16; ++j) {
    q[j] = byte_at(qs, j) & 15;
    q[j + 16] = byte_at(qs, j) >> 4;
  }
}

// Bit j of the little-endian word is bit 4 of value j.
void add_fifth_bit(const std::byte* qh, uint8_t* q) {
  uint32_t high;
  std::memcpy(&high, qh, 4);
  for (int j = 0; j < 32; ++j) q[j] = static_cast<uint8_t>(q[j] | (high >> j & 1) << 4);
}

}  // namespace

void unpack_q4_0(const std::byte* block, uint8_t* q, float* scale, float*) {
  scale[0] = load_f16(block);
  split_nibbles(block + 2, q);
}

void unpack_q4_1(const std::byte* block, uint8_t* q, float* scale, float* bias) {
  scale[0] = load_f16(block);
  bias[0] = load_f16(block + 2);
  split_nibbles(block + 4, q);
}

void unpack_q5_0(const std::byte* block, uint8_t* q, float* scale, float*) {
  scale[0] = load_f16(block);
  split_nibbles(block + 6, q);
  add_fifth_bit(block + 2, q);
}

void unpack_q5_1(const std::byte* block, uint8_t* q, float* scale, float* bias) {
  scale[0] = load_f16(block);
  bias[0] = load_f16(block + 2);
  split_nibbles(block + 8, q);
  add_fifth_bit(block + 4, q);
}

// Signed bytes; q = value + 128, so the integer form has zero 128.
void unpack_q8_0(const std::byte* block, uint8_t* q, float* scale, float*) {
  scale[0] = load_f16(block);
  for (int j = 0; j < 32; ++j) q[j] = static_cast<uint8_t>(byte_at(block, 2 + j) ^ 0x80);
}

}  // namespace hearth::packed
