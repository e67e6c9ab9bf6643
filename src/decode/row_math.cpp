#include "decode/row_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "decode/philox.h"
#include "decode/row_kernels.h"

namespace hearth::decode {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();
constexpr size_t kLanes = kRowLanes, kBlock = kRowBlock;
using Kernels = RowKernels;

// e^x for x <= 0 to about 2 units in the last place, without a branch: 2^n * e^r, n = rint(x / ln 2), |r| <= ln(2) / 2,
// Taylor to r^7 (the rest is below 6e-9 of the sum). x below -87, or NaN, counts as -87.
[[gnu::always_inline]] inline float exp_below_zero(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer that stands in the low bits
  // As integers, which compare without a branch: the magnitude's bits rise with it, those of NaN lie above all.
  const int32_t magnitude = std::bit_cast<int32_t>(x) & 0x7fffffff, limit = std::bit_cast<int32_t>(87.0f);
  x = -std::bit_cast<float>(magnitude < limit ? magnitude : limit);
  const float shifted = x * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

// sum[lane] += exp(z[i] - top) for i = lane mod kLanes; n a multiple of kBlock.
[[gnu::always_inline]] inline void add_exps(const float* z, size_t n, float top, double* sum) {
  float e[kBlock];
  for (size_t i = 0; i < n; i += kBlock) {
    for (size_t j = 0; j < kBlock; ++j) e[j] = exp_below_zero(z[i + j] - top);
    for (size_t j = 0; j < kBlock; j += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) sum[lane] += double{e[j + lane]};
  }
}

[[gnu::always_inline]] inline float highest_of(const float* z, size_t n) {
  float top[kLanes];
  for (size_t j = 0; j < kLanes; ++j) top[j] = kOut;
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) top[j] = z[i + j] > top[j] ? z[i + j] : top[j];
  for (size_t i = whole; i < n; ++i) top[0] = z[i] > top[0] ? z[i] : top[0];
  float best = kOut;
  for (size_t j = 0; j < kLanes; ++j) best = top[j] > best ? top[j] : best;
  return best;
}

// z[i] - by, NaN to -inf.
[[gnu::always_inline]] inline void subtract(float* z, size_t n, double by) {
  for (size_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(double{z[i]} - by);
    z[i] = v == v ? v : kOut;
  }
}

// The first words of philox.h for kLanes ids.
[[gnu::always_inline]] inline void philox_any(uint32_t first, const NoiseKey& key, uint32_t* words) {
  for (size_t j = 0; j < kLanes; ++j)
    words[j] =
        philox({key.step[0], key.step[1], first + static_cast<uint32_t>(j), key.stream}, {key.seed[0], key.seed[1]})[0];
}

template <class Philox>
[[gnu::always_inline]] inline void add_noise(const float* l, uint32_t first, const NoiseKey& key, NoiseBlock& out,
                                             const Philox& philox_words) {
  for (size_t i = 0; i < kBlock; i += kLanes) philox_words(first + static_cast<uint32_t>(i), key, out.words + i);
  for (size_t j = 0; j < kLanes; ++j) out.value_max[j] = kOut, out.word_max[j] = 0;
  for (size_t i = 0; i < kBlock; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) {
      const float value = l[i + j];
      const uint32_t word = out.words[i + j];
      out.value_max[j] = value > out.value_max[j] ? value : out.value_max[j];
      out.word_max[j] = word > out.word_max[j] ? word : out.word_max[j];
    }
}

float highest_any(const float* z, size_t n) { return highest_of(z, n); }
void add_exps_any(const float* z, size_t n, float top, double* sum) { add_exps(z, n, top, sum); }
void subtract_any(float* z, size_t n, double by) { subtract(z, n, by); }
void add_noise_any(const float* l, uint32_t first, const NoiseKey& key, NoiseBlock& b) {
  add_noise(l, first, key, b, [](uint32_t id, const NoiseKey& k, uint32_t* words) { philox_any(id, k, words); });
}

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own AVX-512 headers start "undefined" vectors with themselves and warn about it where they are inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
[[gnu::target("avx2")]] float highest_avx2(const float* z, size_t n) { return highest_of(z, n); }
[[gnu::target("avx2")]] void add_exps_avx2(const float* z, size_t n, float top, double* s) { add_exps(z, n, top, s); }
[[gnu::target("avx2")]] void subtract_avx2(float* z, size_t n, double by) { subtract(z, n, by); }

// A word in the low half of each 64-bit lane: multiplying reads no more, and a product's halves are the next words.
struct PhiloxAvx2 {
  [[gnu::target("avx2")]] void operator()(uint32_t first, const NoiseKey& key, uint32_t* words) const {
    constexpr int kGroups = 4;
    __m256i a[kGroups], b[kGroups], c[kGroups], d[kGroups];
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    for (int g = 0; g < kGroups; ++g) {
      a[g] = _mm256_set1_epi64x(key.step[0]);
      b[g] = _mm256_set1_epi64x(key.step[1]);
      c[g] = _mm256_add_epi64(_mm256_set1_epi64x(first + 4 * static_cast<uint32_t>(g)), _mm256_set_epi64x(3, 2, 1, 0));
      d[g] = _mm256_set1_epi64x(key.stream);
    }
    uint32_t k0 = key.seed[0], k1 = key.seed[1];
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
      for (int g = 0; g < kGroups; ++g) {
        const __m256i x = _mm256_mul_epu32(a[g], m0), y = _mm256_mul_epu32(c[g], m1);
        a[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(y, 32), b[g]), key0);
        b[g] = y;
        c[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(x, 32), d[g]), key1);
        d[g] = x;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const __m256i even = _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0);
    for (int g = 0; g < kGroups; ++g)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4 * g),
                       _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(a[g], even)));
  }
};

struct PhiloxAvx512 {
  [[gnu::target("avx512f")]] void operator()(uint32_t first, const NoiseKey& key, uint32_t* words) const {
    constexpr int kGroups = 2;
    __m512i a[kGroups], b[kGroups], c[kGroups], d[kGroups];
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    for (int g = 0; g < kGroups; ++g) {
      a[g] = _mm512_set1_epi64(key.step[0]);
      b[g] = _mm512_set1_epi64(key.step[1]);
      c[g] = _mm512_add_epi64(_mm512_set1_epi64(first + 8 * static_cast<uint32_t>(g)),
                              _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
      d[g] = _mm512_set1_epi64(key.stream);
    }
    uint32_t k0 = key.seed[0], k1 = key.seed[1];
    for (int round = 0; round < 10; ++round) {
      const __m512i key0 = _mm512_set1_epi64(k0), key1 = _mm512_set1_epi64(k1);
      for (int g = 0; g < kGroups; ++g) {
        const __m512i x = _mm512_mul_epu32(a[g], m0), y = _mm512_mul_epu32(c[g], m1);
        a[g] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(y, 32), b[g]), key0);
        b[g] = y;
        c[g] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(x, 32), d[g]), key1);
        d[g] = x;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int g = 0; g < kGroups; ++g) {
      alignas(64) uint64_t lanes[8];
      _mm512_store_si512(lanes, a[g]);
      for (int j = 0; j < 8; ++j) words[8 * g + j] = static_cast<uint32_t>(lanes[j]);
    }
  }
};

[[gnu::target("avx2")]] void add_noise_avx2(const float* l, uint32_t first, const NoiseKey& key, NoiseBlock& b) {
  add_noise(l, first, key, b, PhiloxAvx2{});
}
[[gnu::target("avx512f")]] void add_noise_avx512(const float* l, uint32_t first, const NoiseKey& key, NoiseBlock& b) {
  add_noise(l, first, key, b, PhiloxAvx512{});
}

#endif

const Kernels& kernels() {
  static const Kernels chosen = row_kernels().back();
  return chosen;
}

}  // namespace

std::vector<RowKernels> row_kernels() {
  std::vector<RowKernels> list = {{highest_any, add_exps_any, subtract_any, add_noise_any}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) list.push_back({highest_avx2, add_exps_avx2, subtract_avx2, add_noise_avx2});
  if (__builtin_cpu_supports("avx512f")) list.push_back({highest_avx2, add_exps_avx2, subtract_avx2, add_noise_avx512});
#endif
  return list;
}

float highest(std::span<const float> values) { return kernels().highest(values.data(), values.size()); }

// The highest value block by block: only the first block that holds it is searched for its place.
int32_t argmax(std::span<const float> values) {
  float top = kOut;
  size_t block = 0;
  for (size_t i = 0; i < values.size(); i += kBlock)
    if (const float z = highest(values.subspan(i, std::min(kBlock, values.size() - i))); z > top) top = z, block = i;
  const auto found = std::find(values.begin() + static_cast<int64_t>(block), values.end(), top);
  return found == values.end() ? 0 : static_cast<int32_t>(found - values.begin());
}

double log_sum_below(std::span<const float> z, float top) {
  std::array<double, kLanes> sum{};
  const size_t whole = z.size() / kBlock * kBlock;
  kernels().add_exps(z.data(), whole, top, sum.data());
  double total = 0;
  if (whole < z.size()) {
    std::array<float, kBlock> rest;
    rest.fill(kOut);
    std::copy(z.begin() + static_cast<int64_t>(whole), z.end(), rest.begin());
    std::array<double, kLanes> more{};
    for (size_t j = 0; j < z.size() - whole; ++j) more[j % kLanes] += double{exp_below_zero(rest[j] - top)};
    for (size_t lane = 0; lane < kLanes; ++lane) sum[lane] += more[lane];
  }
  for (const double s : sum) total += s;
  return std::log(total);
}

bool log_softmax(std::span<float> logits) {
  const float top = highest(logits);
  if (!std::isfinite(top)) return false;
  kernels().subtract(logits.data(), logits.size(), double{top} + log_sum_below(logits, top));
  return true;
}

size_t indices_above(std::span<const float> values, float cut, int32_t* ids) {
  size_t n = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    ids[n] = static_cast<int32_t>(i);
    n += values[i] > cut;
  }
  return n;
}

void mass_by_cell(std::span<const float> l, std::span<const int32_t> ids, float top, float scale,
                  std::span<double> mass) {
  for (const int32_t id : ids) {
    const float v = l[static_cast<size_t>(id)];
    mass[cell_of(v, top, scale, mass.size())] += double{exp_below_zero(v)};
  }
}

namespace {

// Upper bounds of exp(score - top) by value, in cells from the likeliest value down; top rises as the search goes on.
class Bounds {
 public:
  // What lies at or below `low` cannot win. score: not falling.
  Bounds(float low, float likeliest, double top, const std::function<double(float)>& score)
      : from_(std::max(low, likeliest - 4096)) {
    const float width = (likeliest - from_) / kCells;
    for (size_t i = 0; i < kCells; ++i) {  // a cell more on top than rounding can ask for
      const float upper = i + 1 == kCells ? likeliest : std::min(likeliest, from_ + width * static_cast<float>(i + 2));
      bound_[i] = static_cast<float>(1.001 * std::exp(score(upper) - top));  // at most e^3.2
    }
    per_width_ = width > 0 ? 1 / width : 0;
  }

  void raise(double by) {
    for (float& b : bound_) b *= static_cast<float>(std::exp(-by));
  }

  // The least word of noise with which the value may win: -log(u) >= 1 - u must lie below the bound, and 1 - u is
  // (~word + 0.5) / 2^32.
  uint32_t word_of(float value) const {
    const float cell = std::max(0.0f, (value - from_) * per_width_);
    const float b = bound_[std::min(static_cast<size_t>(cell), kCells - 1)] * 0x1p32f;
    return b < 0x1p32f ? ~static_cast<uint32_t>(b) : 0;
  }

 private:
  static constexpr size_t kCells = 128;
  float from_, per_width_;
  std::array<float, kCells> bound_;
};

}  // namespace

int32_t GumbelSearch::run(std::span<const float> l, const std::function<double(float)>& score) const {
  constexpr double kNoiseMax = 22.9;  // -log(-log(1 - 2^-33)) = 22.87
  int32_t best = argmax(l);
  const float likeliest = l[static_cast<size_t>(best)];
  if (!(likeliest > kOut)) return -1;
  const auto noisy = [&](float value, double uniform) { return score(value) - std::log(-std::log(uniform)); };
  double top = noisy(likeliest, philox_uniform(seed, step, static_cast<uint32_t>(best), stream));

  // A value that cannot win, nor can what lies below it.
  float low = -1e30f, high = likeliest;
  if (score(low) + kNoiseMax < top) {
    for (int i = 0; i < 200 && high - low > 1e-3f; ++i) {
      const float middle = 0.5f * low + 0.5f * high;
      (score(middle) + kNoiseMax < top ? low : high) = middle;
    }
  } else {
    low = kOut;
  }

  Bounds bounds(low, likeliest, top, score);
  const NoiseKey key{.step = {static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
                     .stream = stream,
                     .seed = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  NoiseBlock noise;
  std::array<float, kBlock> rest;
  for (size_t at = 0; at < l.size(); at += kBlock) {
    const float* values = l.data() + at;
    if (at + kBlock > l.size()) {
      rest.fill(kOut);
      std::copy(l.begin() + static_cast<int64_t>(at), l.end(), rest.begin());
      values = rest.data();
    }
    if (!(highest({values, kBlock}) > low)) continue;
    kernels().add_noise(values, static_cast<uint32_t>(at), key, noise);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (!(noise.value_max[lane] > low) || noise.word_max[lane] < bounds.word_of(noise.value_max[lane])) continue;
      for (size_t i = lane; i < kBlock; i += kLanes) {
        if (!(values[i] > low) || noise.words[i] < bounds.word_of(values[i])) continue;
        const auto id = static_cast<int32_t>(at + i);
        const double g = noisy(values[i], (noise.words[i] + 0.5) * 0x1p-32);
        if (g > top || (g == top && id < best)) {
          bounds.raise(g - top);
          best = id;
          top = g;
        }
      }
    }
  }
  return best;
}

}  // namespace hearth::decode
