// Independent chains hide the latency of every instruction here.
#include "probe/peak_loops.h"

#include <immintrin.h>

#include <vector>

#include "cpu/isa.h"
#include "cpu/target.h"

namespace hearth::probe {
namespace {

// Whole loops in assembly: a compiler that keeps the sums in memory measures the store port instead.
// Operands are zero: whatever stood in them could be slow (subnormals).
#define HEARTH_LOOP(body) \
  "vpxor %%xmm10, %%xmm10, %%xmm10\nvpxor %%xmm11, %%xmm11, %%xmm11\n1:\n" body "dec %0\njnz 1b\n"

HEARTH_TARGET("avx2,fma")
void fma256(int64_t n) {
  asm volatile(HEARTH_LOOP("vfmadd231ps %%ymm10, %%ymm11, %%ymm0\nvfmadd231ps %%ymm10, %%ymm11, %%ymm1\n"
                           "vfmadd231ps %%ymm10, %%ymm11, %%ymm2\nvfmadd231ps %%ymm10, %%ymm11, %%ymm3\n"
                           "vfmadd231ps %%ymm10, %%ymm11, %%ymm4\nvfmadd231ps %%ymm10, %%ymm11, %%ymm5\n"
                           "vfmadd231ps %%ymm10, %%ymm11, %%ymm6\nvfmadd231ps %%ymm10, %%ymm11, %%ymm7\n"
                           "vfmadd231ps %%ymm10, %%ymm11, %%ymm8\nvfmadd231ps %%ymm10, %%ymm11, %%ymm9\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11");
}
// The exact 16-bit dot of AVX2: pairs of int16 products to int32, then an add. Products go to three registers in turn.
void madd256(int64_t n) {
  asm volatile(HEARTH_LOOP("vpmaddwd %%ymm14, %%ymm15, %%ymm10\nvpaddd %%ymm10, %%ymm0, %%ymm0\n"
                           "vpmaddwd %%ymm14, %%ymm15, %%ymm11\nvpaddd %%ymm11, %%ymm1, %%ymm1\n"
                           "vpmaddwd %%ymm14, %%ymm15, %%ymm12\nvpaddd %%ymm12, %%ymm2, %%ymm2\n"
                           "vpmaddwd %%ymm14, %%ymm15, %%ymm10\nvpaddd %%ymm10, %%ymm3, %%ymm3\n"
                           "vpmaddwd %%ymm14, %%ymm15, %%ymm11\nvpaddd %%ymm11, %%ymm4, %%ymm4\n"
                           "vpmaddwd %%ymm14, %%ymm15, %%ymm12\nvpaddd %%ymm12, %%ymm5, %%ymm5\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm10", "xmm11", "xmm12");
}
// u8 * s8 pairs to int16, then an add: what 4-bit weights allow.
void maddubs256(int64_t n) {
  asm volatile(HEARTH_LOOP("vpmaddubsw %%ymm14, %%ymm15, %%ymm10\nvpaddw %%ymm10, %%ymm0, %%ymm0\n"
                           "vpmaddubsw %%ymm14, %%ymm15, %%ymm11\nvpaddw %%ymm11, %%ymm1, %%ymm1\n"
                           "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\nvpaddw %%ymm12, %%ymm2, %%ymm2\n"
                           "vpmaddubsw %%ymm14, %%ymm15, %%ymm10\nvpaddw %%ymm10, %%ymm3, %%ymm3\n"
                           "vpmaddubsw %%ymm14, %%ymm15, %%ymm11\nvpaddw %%ymm11, %%ymm4, %%ymm4\n"
                           "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\nvpaddw %%ymm12, %%ymm5, %%ymm5\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm10", "xmm11", "xmm12");
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
HEARTH_TARGET_END

HEARTH_TARGET("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")
void fma512(int64_t n) {
  asm volatile(HEARTH_LOOP("vfmadd231ps %%zmm10, %%zmm11, %%zmm0\nvfmadd231ps %%zmm10, %%zmm11, %%zmm1\n"
                           "vfmadd231ps %%zmm10, %%zmm11, %%zmm2\nvfmadd231ps %%zmm10, %%zmm11, %%zmm3\n"
                           "vfmadd231ps %%zmm10, %%zmm11, %%zmm4\nvfmadd231ps %%zmm10, %%zmm11, %%zmm5\n"
                           "vfmadd231ps %%zmm10, %%zmm11, %%zmm6\nvfmadd231ps %%zmm10, %%zmm11, %%zmm7\n"
                           "vfmadd231ps %%zmm10, %%zmm11, %%zmm8\nvfmadd231ps %%zmm10, %%zmm11, %%zmm9\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11");
}
void vnni512(int64_t n) {
  asm volatile(HEARTH_LOOP("vpdpbusd %%zmm10, %%zmm11, %%zmm0\nvpdpbusd %%zmm10, %%zmm11, %%zmm1\n"
                           "vpdpbusd %%zmm10, %%zmm11, %%zmm2\nvpdpbusd %%zmm10, %%zmm11, %%zmm3\n"
                           "vpdpbusd %%zmm10, %%zmm11, %%zmm4\nvpdpbusd %%zmm10, %%zmm11, %%zmm5\n"
                           "vpdpbusd %%zmm10, %%zmm11, %%zmm6\nvpdpbusd %%zmm10, %%zmm11, %%zmm7\n"
                           "vpdpbusd %%zmm10, %%zmm11, %%zmm8\nvpdpbusd %%zmm10, %%zmm11, %%zmm9\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11");
}
void bf16_512(int64_t n) {
  asm volatile(HEARTH_LOOP("vdpbf16ps %%zmm10, %%zmm11, %%zmm0\nvdpbf16ps %%zmm10, %%zmm11, %%zmm1\n"
                           "vdpbf16ps %%zmm10, %%zmm11, %%zmm2\nvdpbf16ps %%zmm10, %%zmm11, %%zmm3\n"
                           "vdpbf16ps %%zmm10, %%zmm11, %%zmm4\nvdpbf16ps %%zmm10, %%zmm11, %%zmm5\n"
                           "vdpbf16ps %%zmm10, %%zmm11, %%zmm6\nvdpbf16ps %%zmm10, %%zmm11, %%zmm7\n"
                           "vdpbf16ps %%zmm10, %%zmm11, %%zmm8\nvdpbf16ps %%zmm10, %%zmm11, %%zmm9\n")
               : "+r"(n)
               :
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11");
}
void read512(const std::byte* data, int64_t bytes) {
  __m512i s[4] = {};
  for (int64_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) s[j] = _mm512_add_epi64(s[j], _mm512_load_si512(data + i + 64 * j));
  }
  for (__m512i& v : s) asm volatile("" ::"v"(v));
}
HEARTH_TARGET_END

HEARTH_TARGET("amx-tile,amx-int8")
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
HEARTH_TARGET_END

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
      list.push_back({"int16 madd + add, 256 bits", 6 * 16 * 2, madd256});
      list.push_back({"int8 maddubs + add, 256 bits", 6 * 32 * 2, maddubs256});
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
  // A register is added: sums of constants are folded by the front end of newer CPUs.
  uint64_t n = kDependentAdds / 10, x = 1;
  asm volatile("1:\n.rept 10\nadd %2,%1\n.endr\ndec %0\njnz 1b" : "+&r"(n), "+&r"(x) : "r"(uint64_t{3}) : "cc");
}

}  // namespace hearth::probe
