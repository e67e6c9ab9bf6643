// The block formats one by one; private to tensor/packed. Every function reads exactly one block of its format.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/packed.h"

namespace hearth::packed {

constexpr int kBlockMax = 256;       // values of the largest block
constexpr int kBlockGroupsMax = 16;  // scales of the largest block

// q [values] unsigned; scale, bias [values / group]; bias is written only by formats that have one.
using UnpackBlock = void (*)(const std::byte* block, uint8_t* q, float* scale, float* bias);
using DecodeBlock = void (*)(const std::byte* block, float* out);

struct CodecInfo {
  Codec codec;
  const char* name;
  int values, bytes;   // of a block; 0 for affine, whose sizes come from the format
  IntegerForm form;    // bits 0: no integer format
  UnpackBlock unpack;  // integer formats
  DecodeBlock decode;  // table formats and plain rows
};
const CodecInfo& info_of(Codec codec);

inline uint8_t byte_at(const std::byte* p, int i) { return static_cast<uint8_t>(p[i]); }

inline float load_f16(const std::byte* p) {
  f16 h;
  std::memcpy(&h, p, 2);
  return to_float(h);
}

void unpack_q4_0(const std::byte*, uint8_t*, float*, float*);
void unpack_q4_1(const std::byte*, uint8_t*, float*, float*);
void unpack_q5_0(const std::byte*, uint8_t*, float*, float*);
void unpack_q5_1(const std::byte*, uint8_t*, float*, float*);
void unpack_q8_0(const std::byte*, uint8_t*, float*, float*);
void unpack_q2_k(const std::byte*, uint8_t*, float*, float*);
void unpack_q3_k(const std::byte*, uint8_t*, float*, float*);
void unpack_q4_k(const std::byte*, uint8_t*, float*, float*);
void unpack_q5_k(const std::byte*, uint8_t*, float*, float*);
void unpack_q6_k(const std::byte*, uint8_t*, float*, float*);
void decode_iq4_nl(const std::byte*, float*);
void decode_iq4_xs(const std::byte*, float*);
void decode_mxfp4(const std::byte*, float*);
void decode_f32(const std::byte*, float*);
void decode_f16(const std::byte*, float*);
void decode_bf16(const std::byte*, float*);

// One group of an affine row: `group` values whose first starts at bit 0 of `q`.
void unpack_affine(const std::byte* stream, int bits, int64_t count, uint8_t* q);
float load_scale(const std::byte* p, DType type, int64_t index);

}  // namespace hearth::packed
