#include "tensor/packed.h"

#include "base/error.h"
#include "tensor/packed/codecs.h"

namespace hearth {
namespace packed {
namespace {

constexpr IntegerForm kNone{};
constexpr CodecInfo kCodecs[] = {
    {Codec::f32, "f32", 1, 4, kNone, nullptr, decode_f32},
    {Codec::f16, "f16", 1, 2, kNone, nullptr, decode_f16},
    {Codec::bf16, "bf16", 1, 2, kNone, nullptr, decode_bf16},
    {Codec::affine, "affine", 0, 0, kNone, nullptr, nullptr},
    {Codec::q4_0, "q4_0", 32, 18, {4, 32, 8, false}, unpack_q4_0, nullptr},
    {Codec::q4_1, "q4_1", 32, 20, {4, 32, 0, true}, unpack_q4_1, nullptr},
    {Codec::q5_0, "q5_0", 32, 22, {5, 32, 16, false}, unpack_q5_0, nullptr},
    {Codec::q5_1, "q5_1", 32, 24, {5, 32, 0, true}, unpack_q5_1, nullptr},
    {Codec::q8_0, "q8_0", 32, 34, {8, 32, 128, false}, unpack_q8_0, nullptr},
    {Codec::q4_k, "q4_k", 256, 144, {4, 32, 0, true}, unpack_q4_k, nullptr},
    {Codec::q5_k, "q5_k", 256, 176, {5, 32, 0, true}, unpack_q5_k, nullptr},
    {Codec::q6_k, "q6_k", 256, 210, {6, 16, 32, false}, unpack_q6_k, nullptr},
    {Codec::q2_k, "q2_k", 256, 84, {2, 16, 0, true}, unpack_q2_k, nullptr},
    {Codec::q3_k, "q3_k", 256, 110, {3, 16, 4, false}, unpack_q3_k, nullptr},
    {Codec::iq4_nl, "iq4_nl", 32, 18, kNone, nullptr, decode_iq4_nl},
    {Codec::iq4_xs, "iq4_xs", 256, 136, kNone, nullptr, decode_iq4_xs},
    {Codec::mxfp4, "mxfp4", 32, 17, kNone, nullptr, decode_mxfp4},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kCodecs); ++i)
    if (static_cast<size_t>(kCodecs[i].codec) != i) return false;
  return std::size(kCodecs) == static_cast<size_t>(Codec::mxfp4) + 1;
}
static_assert(in_order());

}  // namespace

const CodecInfo& info_of(Codec codec) { return kCodecs[static_cast<size_t>(codec)]; }

}  // namespace packed

using packed::CodecInfo;
using packed::info_of;

namespace {

bool is_affine(const PackedFormat& format) { return format.codec == Codec::affine; }

const std::byte* row_of(const PackedTensor& w, int64_t n) { return w.data.data() + n * row_bytes(w.format, w.K); }

// x = scale * (q - zero) + bias over groups, as the definition orders it; no addition where there is no bias, so that
// a negative zero stays one.
void apply(const IntegerForm& form, int64_t count, const uint8_t* q, const float* scale, const float* bias,
           float* out) {
  for (int64_t g = 0; g < count / form.group; ++g, q += form.group, out += form.group) {
    const float s = scale[g], b = form.has_bias ? bias[g] : 0;
    if (form.has_bias)
      for (int j = 0; j < form.group; ++j) out[j] = s * static_cast<float>(q[j]) + b;
    else
      for (int j = 0; j < form.group; ++j) out[j] = s * static_cast<float>(q[j] - form.zero);
  }
}

void decode_affine_group(const PackedTensor& w, int64_t n, int64_t g, float* out) {
  const int64_t group = w.format.group, index = n * (w.K / group) + g;
  uint8_t q[128];
  packed::unpack_affine(row_of(w, n) + g * group * w.format.bits / 8, w.format.bits, group, q);
  const float scale = packed::load_scale(w.scales.data(), w.format.scale_type, index);
  const float bias = packed::load_scale(w.biases.data(), w.format.scale_type, index);
  apply(integer_form(w.format), group, q, &scale, &bias, out);
}

void decode_block(const CodecInfo& info, const std::byte* block, float* out) {
  if (info.decode) return info.decode(block, out);
  uint8_t q[packed::kBlockMax];
  float scale[packed::kBlockGroupsMax], bias[packed::kBlockGroupsMax];
  info.unpack(block, q, scale, bias);
  apply(info.form, info.values, q, scale, bias, out);
}

void require_extent(std::string_view name, const char* part, size_t have, int64_t rows, int64_t bytes_per_row) {
  int64_t want;
  if (__builtin_mul_overflow(rows, bytes_per_row, &want))
    fail(ErrorKind::corrupt_file, "{}: {} rows of {} bytes exceed 2^63", name, rows, bytes_per_row);
  if (have != static_cast<size_t>(want))
    fail(ErrorKind::corrupt_file, "{}: {} has {} bytes, {} rows of {} need {}", name, part, have, rows, bytes_per_row,
         want);
}

}  // namespace

std::string name_of(const PackedFormat& format) {
  if (!is_affine(format)) return info_of(format.codec).name;
  return fmt::format("affine{}_g{}_{}", format.bits, format.group, name_of(format.scale_type));
}

int64_t values_per_block(const PackedFormat& format) {
  return is_affine(format) ? format.group : info_of(format.codec).values;
}

int64_t row_bytes(const PackedFormat& format, int64_t K) {
  if (is_affine(format)) return K / 8 * format.bits;
  const CodecInfo& info = info_of(format.codec);
  return K / info.values * info.bytes;
}

double bits_per_weight(const PackedFormat& format) {
  if (is_affine(format)) return format.bits + 16.0 * static_cast<double>(size_of(format.scale_type)) / format.group;
  const CodecInfo& info = info_of(format.codec);
  return 8.0 * info.bytes / info.values;
}

void validate(const PackedTensor& w, std::string_view name) {
  const PackedFormat& f = w.format;
  if (w.N <= 0 || w.K <= 0) fail(ErrorKind::corrupt_file, "{}: shape [{}, {}] is empty", name, w.N, w.K);
  if (is_affine(f)) {
    if (!is_affine_width(f.bits) || !is_affine_group(f.group))
      fail(ErrorKind::invalid_argument,
           "{}: affine with bits {} and group_size {}; supported are bits 2 3 4 5 6 8 and "
           "group_size 32 64 128",
           name, f.bits, f.group);
    if (!is_affine_scale(f.scale_type))
      fail(ErrorKind::invalid_argument, "{}: scales are {}; supported are f16 bf16 f32", name, name_of(f.scale_type));
  }
  const int64_t block = values_per_block(f);
  if (w.K % block != 0)
    fail(ErrorKind::corrupt_file, "{}: K = {} is no multiple of {}, the block of {}", name, w.K, block, name_of(f));
  if (w.K > INT64_MAX / 64) fail(ErrorKind::corrupt_file, "{}: K = {} is too large", name, w.K);
  require_extent(name, "data", w.data.size(), w.N, row_bytes(f, w.K));
  const int64_t scale_bytes = is_affine(f) ? w.K / f.group * static_cast<int64_t>(size_of(f.scale_type)) : 0;
  require_extent(name, "scales", w.scales.size(), w.N, scale_bytes);
  require_extent(name, "biases", w.biases.size(), w.N, scale_bytes);
}

float decode_value(const PackedTensor& w, int64_t n, int64_t k) {
  HEARTH_CHECK(n >= 0 && n < w.N && k >= 0 && k < w.K, "decode [{}, {}] of [{}, {}]", n, k, w.N, w.K);
  float values[packed::kBlockMax];
  const int64_t block = values_per_block(w.format);
  if (is_affine(w.format)) decode_affine_group(w, n, k / block, values);
  else {
    const CodecInfo& info = info_of(w.format.codec);
    decode_block(info, row_of(w, n) + k / block * info.bytes, values);
  }
  return values[k % block];
}

void decode_row(const PackedTensor& w, int64_t n, std::span<float> out) {
  HEARTH_CHECK(n >= 0 && n < w.N && static_cast<int64_t>(out.size()) == w.K, "decode_row {} of [{}, {}] into {}", n,
               w.N, w.K, out.size());
  const int64_t block = values_per_block(w.format);
  if (is_affine(w.format)) {
    for (int64_t g = 0; g < w.K / block; ++g) decode_affine_group(w, n, g, out.data() + g * block);
    return;
  }
  const CodecInfo& info = info_of(w.format.codec);
  const std::byte* p = row_of(w, n);
  switch (w.format.codec) {
    case Codec::f32: std::memcpy(out.data(), p, out.size_bytes()); return;
    case Codec::f16:
      for (int64_t k = 0; k < w.K; ++k) packed::decode_f16(p + 2 * k, &out[static_cast<size_t>(k)]);
      return;
    case Codec::bf16:
      for (int64_t k = 0; k < w.K; ++k) packed::decode_bf16(p + 2 * k, &out[static_cast<size_t>(k)]);
      return;
    default:
      for (int64_t i = 0; i < w.K / block; ++i) decode_block(info, p + i * info.bytes, out.data() + i * block);
  }
}

bool is_integer_format(const PackedFormat& format) { return is_affine(format) || info_of(format.codec).unpack; }

IntegerForm integer_form(const PackedFormat& format) {
  if (is_affine(format)) return {format.bits, format.group, 0, true};
  HEARTH_CHECK(is_integer_format(format), "{} is no integer format", name_of(format));
  return info_of(format.codec).form;
}

void unpack_row(const PackedTensor& w, int64_t n, uint8_t* q, float* scale, float* bias) {
  HEARTH_CHECK(n >= 0 && n < w.N, "unpack_row {} of [{}, {}]", n, w.N, w.K);
  const IntegerForm form = integer_form(w.format);
  const int64_t groups = w.K / form.group;
  if (is_affine(w.format)) {
    packed::unpack_affine(row_of(w, n), form.bits, w.K, q);
    for (int64_t g = 0; g < groups; ++g) {
      scale[g] = packed::load_scale(w.scales.data(), w.format.scale_type, n * groups + g);
      bias[g] = packed::load_scale(w.biases.data(), w.format.scale_type, n * groups + g);
    }
    return;
  }
  const CodecInfo& info = info_of(w.format.codec);
  if (!form.has_bias) std::memset(bias, 0, static_cast<size_t>(groups) * sizeof(float));
  const int64_t per_block = info.values / form.group;
  const std::byte* block = row_of(w, n);
  for (int64_t i = 0; i < w.K / info.values; ++i, block += info.bytes)
    info.unpack(block, q + i * info.values, scale + i * per_block, bias + i * per_block);
}

}  // namespace hearth
