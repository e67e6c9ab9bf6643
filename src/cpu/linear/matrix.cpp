// Opening packed bytes, and reading single rows back from them.
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "cpu/linear.h"
#include "cpu/linear/layout.h"
#include "cpu/linear/unit.h"

namespace hearth::cpu {
namespace {

constexpr char kMagic[8] = {'h', 'e', 'a', 'r', 't', 'h', 'L', 'W'};
constexpr uint32_t kVersion = 2;

PackedFormat format_in(const Header& h) {
  return {static_cast<Codec>(h.codec), h.bits, h.group, static_cast<DType>(h.scale_type)};
}

bool known(const PackedFormat& f) {
  if (f.codec > Codec::mxfp4) return false;
  if (f.codec != Codec::affine) return f == PackedFormat{.codec = f.codec};
  const bool bits = f.bits >= 2 && f.bits <= 8 && f.bits != 7;
  const bool scale = f.scale_type == DType::f16 || f.scale_type == DType::bf16 || f.scale_type == DType::f32;
  return bits && scale && (f.group == 32 || f.group == 64 || f.group == 128);
}

float scale_at(ScaleKind kind, const std::byte* p, int64_t i) {
  if (kind == ScaleKind::f32) {
    float x;
    std::memcpy(&x, p + 4 * i, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, p + 2 * i, 2);
  return kind == ScaleKind::f16 ? to_float(f16{bits}) : to_float(bf16{bits});
}

void plain_row(const Shape& shape, const std::byte* block, int64_t r, int64_t K, float* out) {
  const ScaleKind kind = shape.plain == Plain::f32   ? ScaleKind::f32
                         : shape.plain == Plain::f16 ? ScaleKind::f16
                                                     : ScaleKind::bf16;
  for (int64_t k = 0; k < K; ++k) out[k] = scale_at(kind, block, k * kBlockRows + r);
}

// Scale and bias of the group of k; row r of its block.
struct ScaleBias {
  float scale, bias;
};
ScaleBias scale_bias(const Shape& shape, const std::byte* lead, const std::byte* tail, int64_t k, int64_t r) {
  const int64_t i = k % shape.span() / shape.group * kBlockRows + r;
  const std::byte* biases = tail + shape.scale_bytes();
  if (!shape.has_lead())
    return {scale_at(shape.scale, tail, i), shape.has_bias ? scale_at(shape.scale, biases, i) : 0.0f};
  const float d = scale_at(ScaleKind::f16, lead, r);
  if (shape.scale == ScaleKind::i8) return {d * static_cast<float>(static_cast<int8_t>(tail[i])), 0};
  const float dmin = scale_at(ScaleKind::f16, lead, kBlockRows + r);
  SixBits integers;
  if (shape.scale == ScaleKind::u6) {
    uint32_t words[3];
    const std::byte* six = lead + 4 * kBlockRows + r / kSetRows * kSixBytes;
    for (int v = 0; v < 3; ++v) std::memcpy(&words[v], six + v * 64 + r % kSetRows * 4, 4);
    integers = unpack_six(words, static_cast<int>(k % kLeadSpan / shape.group));
  } else {
    integers = {static_cast<uint8_t>(tail[i]), static_cast<uint8_t>(biases[i])};
  }
  return {d * static_cast<float>(integers.scale), -(dmin * static_cast<float>(integers.minimum))};
}

void integer_row(const Shape& shape, const std::byte* block, int64_t r, int64_t K, float* out) {
  const int64_t set = r / kSetRows, row = r % kSetRows;
  const std::byte* lead = block;
  for (int64_t k0 = 0; k0 < K; k0 += shape.span()) {
    const std::byte* cell = block + shape.cell_offset(k0);
    if (shape.has_lead() && k0 % kLeadSpan == 0) {
      lead = cell;
      cell += shape.lead_bytes();
    }
    uint8_t q[128];
    for (int u = 0; u < shape.units(); ++u) {
      uint32_t words[8];
      const std::byte* unit = cell + set * shape.set_bytes() + u * shape.vectors() * 64;
      for (int v = 0; v < shape.vectors(); ++v) std::memcpy(&words[v], unit + v * 64 + row * 4, 4);
      unpack_unit(shape.bits, words, q + u * kUnit);
    }
    const std::byte* tail = cell + 2 * shape.set_bytes();
    for (int j = 0; j < shape.span(); ++j) {
      const auto [s, b] = scale_bias(shape, lead, tail, k0 + j, r);
      const float product = s * static_cast<float>(q[j] - shape.zero);
      out[k0 + j] = shape.has_bias ? product + b : product;
    }
  }
}

}  // namespace

Shape shape_of(const PackedFormat& format) {
  switch (format.codec) {
    case Codec::f32: return {.plain = Plain::f32};
    case Codec::f16: return {.plain = Plain::f16};
    case Codec::bf16: return {.plain = Plain::bf16};
    case Codec::iq4_nl: return {.bits = 8, .group = 32, .zero = 128, .scale = ScaleKind::f16};
    case Codec::iq4_xs: return {.bits = 8, .group = 32, .zero = 128, .scale = ScaleKind::i8};
    case Codec::mxfp4: return {.bits = 5, .group = 32, .zero = 16, .scale = ScaleKind::bf16};
    default: break;
  }
  const IntegerForm form = integer_form(format);
  Shape shape{.bits = form.bits, .group = form.group, .zero = form.zero, .has_bias = form.has_bias};
  if (format.codec == Codec::affine)
    shape.scale = format.scale_type == DType::f16    ? ScaleKind::f16
                  : format.scale_type == DType::bf16 ? ScaleKind::bf16
                                                     : ScaleKind::f32;
  else if (format.codec == Codec::q4_k || format.codec == Codec::q5_k) shape.scale = ScaleKind::u6;
  else if (values_per_block(format) == kLeadSpan) shape.scale = form.has_bias ? ScaleKind::u8 : ScaleKind::i8;
  else shape.scale = ScaleKind::f16;
  return shape;
}

int64_t Matrix::packed_bytes(const PackedFormat& format, int64_t N, int64_t K) {
  return kHeaderBytes + blocks_of(N) * shape_of(format).block_bytes(K);
}

Matrix Matrix::pack(const PackedTensor& w, Team* team) {
  validate(w, "weights to pack");
  const size_t size = static_cast<size_t>(packed_bytes(w.format, w.N, w.K));
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorKind::out_of_memory, "weights [{}, {}] of {}: {} bytes cannot be mapped", w.N, w.K, name_of(w.format),
         size);
  madvise(memory, size, MADV_HUGEPAGE);
  const std::shared_ptr<const void> owner(memory, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory), size);
  pack_into(w, bytes, team);
  return view(bytes, owner);
}

void write_header(const PackedTensor& w, std::span<std::byte> out) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.version = kVersion;
  h.codec = static_cast<uint8_t>(w.format.codec);
  h.bits = static_cast<uint8_t>(w.format.bits);
  h.scale_type = static_cast<uint8_t>(w.format.scale_type);
  h.group = w.format.group;
  h.N = w.N;
  h.K = w.K;
  h.bytes = static_cast<int64_t>(out.size());
  std::memset(out.data(), 0, kHeaderBytes);
  std::memcpy(out.data(), &h, sizeof h);
}

Matrix Matrix::view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64 != 0)
    fail(ErrorKind::invalid_argument, "packed weights: the address is no multiple of 64");
  Header h;
  if (bytes.size() < kHeaderBytes)
    fail(ErrorKind::corrupt_file, "packed weights: {} bytes, the head alone has {}", bytes.size(), kHeaderBytes);
  std::memcpy(&h, bytes.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.version != kVersion)
    fail(ErrorKind::corrupt_file, "packed weights: no head of version {}", kVersion);
  const PackedFormat format = format_in(h);
  constexpr int64_t kExtentMax = int64_t{1} << 31;
  if (!known(format) || h.zero != 0 || h.zeros != 0 || h.N <= 0 || h.K <= 0 || h.N > kExtentMax || h.K > kExtentMax ||
      h.K % values_per_block(format) != 0)
    fail(ErrorKind::corrupt_file, "packed weights: format {} with [{}, {}] cannot be", h.codec, h.N, h.K);
  const int64_t want = packed_bytes(format, h.N, h.K);
  if (h.bytes != want || std::cmp_not_equal(bytes.size(), want))
    fail(ErrorKind::corrupt_file, "packed weights: [{}, {}] of {} need {} bytes, there are {}", h.N, h.K,
         name_of(format), want, bytes.size());
  Matrix m;
  m.bytes_ = bytes;
  m.owner_ = std::move(owner);
  m.format_ = format;
  m.N_ = h.N;
  m.K_ = h.K;
  return m;
}

bool Matrix::supports(Core core) const { return core == Core::f32 || shape_of(format_).plain == Plain::no; }

void Matrix::row(int64_t n, float* out) const {
  HEARTH_CHECK(n >= 0 && n < N_, "row {} of [{}, {}]", n, N_, K_);
  const Shape shape = shape_of(format_);
  const std::byte* block = bytes_.data() + kHeaderBytes + n / kBlockRows * shape.block_bytes(K_);
  if (shape.plain != Plain::no) plain_row(shape, block, n % kBlockRows, K_, out);
  else integer_row(shape, block, n % kBlockRows, K_, out);
}

}  // namespace hearth::cpu
