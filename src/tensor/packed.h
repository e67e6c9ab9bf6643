// Packed weight formats and their exact decoding (DESIGN 6). Knows nothing of kernels; backends repack from here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace hearth {

enum class Codec : uint8_t {
  f32,
  f16,
  bf16,    // plain rows
  affine,  // MLX: W = s[g] * q + b[g]
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q4_k,
  q5_k,
  q6_k,  // GGUF blocks: s * q + b
  q2_k,
  q3_k,
  iq4_nl,
  iq4_xs,
  mxfp4,  // GGUF blocks, less common
};

struct PackedFormat {
  Codec codec = Codec::f32;
  int bits = 0;                   // affine only: 2 3 4 5 6 8
  int group = 0;                  // affine only: 32 64 128
  DType scale_type = DType::f32;  // affine only: f16 bf16 f32
  bool operator==(const PackedFormat&) const = default;
};

constexpr bool is_affine_width(int64_t bits) { return bits >= 2 && bits <= 8 && bits != 7; }
constexpr bool is_affine_group(int64_t group) { return group == 32 || group == 64 || group == 128; }
constexpr bool is_affine_scale(DType type) { return type == DType::f16 || type == DType::bf16 || type == DType::f32; }

std::string name_of(const PackedFormat& format);           // "q4_1", "affine4_g64_bf16", "f16"
int64_t values_per_block(const PackedFormat& format);      // K must be a multiple (1 for plain rows, G for affine)
int64_t row_bytes(const PackedFormat& format, int64_t K);  // bytes of a row in `data` (affine: without scales, biases)
double bits_per_weight(const PackedFormat& format);

// A weight matrix [N, K], row-major, as its file holds it. Views only.
//   data            N rows of row_bytes(format, K)
//   scales, biases  affine only: [N, K / group] of scale_type
struct PackedTensor {
  PackedFormat format;
  int64_t N = 0, K = 0;
  std::span<const std::byte> data, scales, biases;
};

// Throws Error{corrupt_file} naming `name` when extents do not match the format and N, K, Error{invalid_argument} for
// an affine format outside the list above. Everything below trusts a tensor that passed.
void validate(const PackedTensor& w, std::string_view name);

// Scales and biases of groups that are NaN or infinite (block formats: the f16 factors of a block); of plain rows the
// values themselves. 0 for mxfp4, whose exponents have no such value here. Reads nothing but those. Rows [begin, end).
int64_t count_nonfinite(const PackedTensor& w, int64_t begin, int64_t end);
int64_t count_nonfinite(const PackedTensor& w);

float decode_value(const PackedTensor& w, int64_t n, int64_t k);          // the definition
void decode_row(const PackedTensor& w, int64_t n, std::span<float> out);  // [K], equal to decode_value() bit for bit

// How kernels see the s * (q - zero) + b formats: unsigned integers q of `bits` bits in groups of G values.
// Plain rows and the table formats (iq4_*, mxfp4) are no integer formats.
struct IntegerForm {
  int bits;   // 2 3 4 5 6 8
  int group;  // 16 32 64 128 values share a scale
  int zero;   // subtracted from q; 0 where the format has a bias
  bool has_bias;
};
bool is_integer_format(const PackedFormat& format);
IntegerForm integer_form(const PackedFormat& format);
// q [K] unsigned; scale, bias [K / group] fp32 exactly as the definition uses them (bias 0 without has_bias).
void unpack_row(const PackedTensor& w, int64_t n, uint8_t* q, float* scale, float* bias);

}  // namespace hearth
