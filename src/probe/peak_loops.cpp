// Ten or more independent chains hide the latency of every instruction here; the empty asm keeps sums alive.
#include "probe/peak_loops.h"

#include <immintrin.h>

#include <vector>

#include "cpu/isa.h"

namespace hearth::probe {
namespace {

#pragma GCC push_options
#pragma GCC target("avx2,fma")
void fma256(int64_t n) {
  __m256 s[10], x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  for (__m256& v : s) v = _mm256_set1_ps(1.0f);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) asm volatile("vfmadd231ps %2, %1, %0" : "+x"(s[j]) : "x"(x), "x"(y));
  }
}
// The exact 16-bit dot of AVX2: pairs of int16 products to int32, then an add.
void madd256(int64_t n) {
  __m256i s[10], x = _mm256_set1_epi16(3), y = _mm256_set1_epi16(5);
  for (__m256i& v : s) v = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) {
      __m256i t;
      asm volatile("vpmaddwd %2, %1, %0" : "=x"(t) : "x"(x), "x"(y));
      asm volatile("vpaddd %1, %0, %0" : "+x"(s[j]) : "x"(t));
    }
  }
}
// u8 * s8 pairs to int16, then an add: what 4-bit weights allow.
void maddubs256(int64_t n) {
  __m256i s[10], x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5);
  for (__m256i& v : s) v = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) {
      __m256i t;
      asm volatile("vpmaddubsw %2, %1, %0" : "=x"(t) : "x"(x), "x"(y));
      asm volatile("vpaddw %1, %0, %0" : "+x"(s[j]) : "x"(t));
    }
  }
}
void read256(const std::byte* data, int64_t bytes) {
  __m256i s[8] = {};
  for (int64_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j)
      s[j] = _mm256_add_epi64(s[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
  }
  for (__m256i& v : s) asm volatile("" ::"x"(v));
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")
void fma512(int64_t n) {
  __m512 s[10], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  for (__m512& v : s) v = _mm512_set1_ps(1.0f);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) asm volatile("vfmadd231ps %2, %1, %0" : "+v"(s[j]) : "v"(x), "v"(y));
  }
}
void vnni512(int64_t n) {
  __m512i s[10], x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
  for (__m512i& v : s) v = _mm512_setzero_si512();
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) asm volatile("vpdpbusd %2, %1, %0" : "+v"(s[j]) : "v"(x), "v"(y));
  }
}
void bf16_512(int64_t n) {
  __m512 s[10];
  const __m512i x = _mm512_set1_epi16(0x3f00), y = _mm512_set1_epi16(0x3e80);
  for (__m512& v : s) v = _mm512_set1_ps(1.0f);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) asm volatile("vdpbf16ps %2, %1, %0" : "+v"(s[j]) : "v"(x), "v"(y));
  }
}
void read512(const std::byte* data, int64_t bytes) {
  __m512i s[4] = {};
  for (int64_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) s[j] = _mm512_add_epi64(s[j], _mm512_load_si512(data + i + 64 * j));
  }
  for (__m512i& v : s) asm volatile("" ::"v"(v));
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8")
// Eight tiles: 4 sums, 2 + 2 operands; one TDPBUSD is 16 x 16 x 64 products.
void amx_int8(int64_t n) {
  struct alignas(64) Config {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t columns[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 8; ++t) config.columns[t] = 64, config.rows[t] = 16;
  asm volatile("" : : "r"(&config) : "memory");  // the intrinsic names only the first bytes of what it reads
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);

  for (int64_t i = 0; i < n; ++i) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}
#pragma GCC pop_options

void read_plain(const std::byte* data, int64_t bytes) {
  const auto* p = reinterpret_cast<const uint64_t*>(data);
  uint64_t s[4] = {};
  for (int64_t i = 0; i < bytes / 8; i += 4)
    for (int j = 0; j < 4; ++j) s[j] += p[i + j];
  asm volatile("" ::"r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]));
}

bool has(cpu::Isa isa) {
  static const std::vector<cpu::Isa> list = cpu::available_isas();
  for (const cpu::Isa i : list)
    if (i == isa) return true;
  return false;
}

}  // namespace

std::span<const PeakLoop> peak_loops() {
  static const std::vector<PeakLoop> loops = [] {
    std::vector<PeakLoop> list;
    if (has(cpu::Isa::avx2)) {
      list.push_back({"fp32 fma, 256 bits", 10 * 8 * 2, fma256});
      list.push_back({"int16 madd + add, 256 bits", 10 * 16 * 2, madd256});
      list.push_back({"int8 maddubs + add, 256 bits", 10 * 32 * 2, maddubs256});
    }
    if (has(cpu::Isa::avx512)) {
      list.push_back({"fp32 fma, 512 bits", 10 * 16 * 2, fma512});
      list.push_back({"int8 dot (VNNI), 512 bits", 10 * 64 * 2, vnni512});
      if (__builtin_cpu_supports("avx512bf16")) list.push_back({"bf16 dot, 512 bits", 10 * 32 * 2, bf16_512});
    }
    if (has(cpu::Isa::amx)) list.push_back({"int8 dot (AMX tiles)", 4.0 * 16 * 16 * 64 * 2, amx_int8});
    return list;
  }();
  return loops;
}

void read_bytes(const std::byte* data, int64_t bytes) {
  if (has(cpu::Isa::avx512)) read512(data, bytes);
  else if (has(cpu::Isa::avx2)) read256(data, bytes);
  else read_plain(data, bytes);
}

void dependent_adds() {
  uint64_t n = kDependentAdds / 10, x = 1;
  asm volatile("1:\n.rept 10\nadd $1,%1\n.endr\ndec %0\njnz 1b" : "+r"(n), "+r"(x)::"cc");
}

}  // namespace hearth::probe
