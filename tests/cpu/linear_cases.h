// Random packed weights of every format and random activations, for the tests of the matrix kernels.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cpu/linear.h"
#include "tensor/packed.h"

namespace hearth::cpu::testing {

struct Weights {
  PackedFormat format;
  int64_t N, K;
  std::vector<std::byte> data, scales, biases;

  PackedTensor view() const { return {format, N, K, data, scales, biases}; }
};

inline std::vector<PackedFormat> integer_formats() {
  std::vector<PackedFormat> all;
  for (const Codec c : {Codec::q4_0, Codec::q4_1, Codec::q5_0, Codec::q5_1, Codec::q8_0, Codec::q4_k, Codec::q5_k,
                        Codec::q6_k, Codec::q2_k, Codec::q3_k, Codec::iq4_nl, Codec::iq4_xs, Codec::mxfp4})
    all.push_back({.codec = c});
  int i = 0;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      all.push_back({Codec::affine, bits, group, std::array{DType::f16, DType::bf16, DType::f32}[size_t(i++ % 3)]});
  // The scale types that the rotation left out of the commonest width.
  for (const DType type : {DType::f16, DType::bf16, DType::f32}) all.push_back({Codec::affine, 4, 64, type});
  return all;
}

inline std::vector<PackedFormat> plain_formats() {
  return {{.codec = Codec::f32}, {.codec = Codec::f16}, {.codec = Codec::bf16}};
}

inline std::vector<PackedFormat> all_formats() {
  std::vector<PackedFormat> all = integer_formats();
  for (const PackedFormat& f : plain_formats()) all.push_back(f);
  return all;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double normal() { return normal_(engine_); }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

inline void put_half(std::byte* p, DType type, float x) {
  const uint16_t bits = type == DType::f16 ? to_f16(x).bits : to_bf16(x).bits;
  std::memcpy(p, &bits, 2);
}

// Offsets of the f16 scales in a block, so that random bytes stay finite and of a common size.
inline std::vector<int> half_scales(Codec codec) {
  switch (codec) {
    case Codec::q4_0:
    case Codec::q5_0:
    case Codec::q8_0:
    case Codec::iq4_nl:
    case Codec::iq4_xs: return {0};
    case Codec::q4_1:
    case Codec::q5_1:
    case Codec::q4_k:
    case Codec::q5_k: return {0, 2};
    case Codec::q2_k: return {80, 82};
    case Codec::q3_k: return {108};
    case Codec::q6_k: return {208};
    default: return {};
  }
}

inline Weights random_weights(const PackedFormat& format, int64_t N, int64_t K, uint64_t seed) {
  Random random(seed);
  Weights w{format, N, K, {}, {}, {}};
  w.data.resize(static_cast<size_t>(N * row_bytes(format, K)));
  for (std::byte& b : w.data) b = static_cast<std::byte>(random.bits());
  const auto scale = [&] { return static_cast<float>((0.5 + random.uniform()) * 0.01 * (random.bits() & 1 ? 1 : -1)); };
  if (format.codec == Codec::affine) {
    const size_t size = size_of(format.scale_type), count = static_cast<size_t>(N * K / format.group);
    w.scales.resize(count * size), w.biases.resize(count * size);
    for (size_t i = 0; i < count; ++i)
      for (std::byte* p : {&w.scales[i * size], &w.biases[i * size]}) {
        const float x = scale() * (p == &w.biases[i * size] ? 8.0f : 1.0f);
        if (format.scale_type == DType::f32) std::memcpy(p, &x, 4);
        else put_half(p, format.scale_type, x);
      }
    return w;
  }
  const size_t block = static_cast<size_t>(row_bytes(format, values_per_block(format)));
  for (size_t i = 0; i < w.data.size(); i += block) {
    for (const int at : half_scales(format.codec)) put_half(&w.data[i + static_cast<size_t>(at)], DType::f16, scale());
    if (format.codec == Codec::mxfp4) w.data[i] = static_cast<std::byte>(118 + random.bits() % 5);
    const float x = scale();
    if (format.codec == Codec::f32) std::memcpy(&w.data[i], &x, 4);
    if (format.codec == Codec::f16) put_half(&w.data[i], DType::f16, x);
    if (format.codec == Codec::bf16) put_half(&w.data[i], DType::bf16, x);
  }
  return w;
}

// Normal rows with a few channels 10 to 300 times larger, as transformers show them.
inline std::vector<float> random_rows(int64_t M, int64_t K, uint64_t seed) {
  Random random(seed);
  std::vector<float> gain(static_cast<size_t>(K)), x(static_cast<size_t>(M * K));
  for (float& g : gain) g = random.uniform() < 0.03 ? static_cast<float>(10 + 290 * random.uniform()) : 1.0f;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.normal()) * gain[i % static_cast<size_t>(K)];
  return x;
}

struct Product {
  Core core = Core::f32;
  Isa isa = Isa::generic;
  int members = 1;
  const float* bias = nullptr;
  const float* add_to = nullptr;  // [M, N]: accumulate onto these
};

// 64-aligned bytes filled with NaN patterns, so that a read of what nobody wrote shows; behind them (rounded up to 64)
// lies a page that may not be touched.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE), room = (bytes + 63) / 64 * 64, held = (room + page - 1) / page * page;
    size_ = static_cast<size_t>(held + page);
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    std::memset(memory_, 0xff, static_cast<size_t>(held));
    mprotect(static_cast<std::byte*>(memory_) + held, static_cast<size_t>(page), PROT_NONE);
    data_ = static_cast<std::byte*>(memory_) + held - room;
  }
  Buffer(Buffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_), data_(other.data_) {}
  ~Buffer() {
    if (memory_) munmap(memory_, size_);
  }
  std::byte* data() { return data_; }

 private:
  void* memory_;
  size_t size_;
  std::byte* data_;
};

// y [M, N] of rows x [M, K]; members run one after the other.
inline std::vector<float> multiply(const Matrix& w, const std::vector<float>& x, int64_t M, const Product& p) {
  const int64_t N = w.N(), K = w.K(), ldy = N + 3;
  std::vector<float> padded(static_cast<size_t>(M * ldy), std::nanf(""));
  if (p.add_to)
    for (int64_t m = 0; m < M; ++m) std::memcpy(&padded[static_cast<size_t>(m * ldy)], p.add_to + m * N, size_t(N) * 4);
  Buffer act(act_row_bytes(p.core, K, p.isa) * M), weights(static_cast<int64_t>(w.bytes().size())), rows(M * K * 4);
  std::memcpy(weights.data(), w.bytes().data(), w.bytes().size());
  std::memcpy(rows.data(), x.data(), static_cast<size_t>(M * K) * 4);
  const Matrix guarded = Matrix::view({weights.data(), w.bytes().size()}, nullptr);
  const float* in = reinterpret_cast<const float*>(rows.data());
  if (p.core != Core::f32)
    quantize_rows({.core = p.core, .K = K, .x = in, .ldx = K, .act = act.data(), .isa = p.isa}, 0, M);
  for (int member = 0; member < p.members; ++member) {
    Buffer scratch(linear_scratch_bytes(M, K));
    linear({.w = &guarded,
            .core = p.core,
            .M = M,
            .x = in,
            .ldx = K,
            .act = act.data(),
            .y = padded.data(),
            .ldy = ldy,
            .bias = p.bias,
            .accumulate = p.add_to != nullptr,
            .scratch = scratch.data(),
            .isa = p.isa},
           member, p.members);
  }
  std::vector<float> y;
  for (int64_t m = 0; m < M; ++m) y.insert(y.end(), padded.begin() + m * ldy, padded.begin() + m * ldy + N);
  return y;
}

inline std::string text(Core core) { return core == Core::f32 ? "f32" : core == Core::s16 ? "s16" : "s8"; }

// A K that exercises chunk borders: an odd multiple of the format's block beyond 512 where that is possible.
inline int64_t awkward_K(const PackedFormat& format) {
  const int64_t block = values_per_block(format);
  return block == 1 ? 301 : block == 256 ? 768 : block == 128 ? 640 : block == 64 ? 576 : 544;
}

}  // namespace hearth::cpu::testing
