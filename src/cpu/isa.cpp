#include "cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace hearth::cpu {
namespace {

constexpr std::string_view kNames[] = {"generic", "avx2", "avx512", "amx"};

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (leaf <= __get_cpuid_max(0, nullptr)) __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
  return r;
}

constexpr bool bit(uint32_t word, int i) { return (word >> i & 1) != 0; }

// State components that the operating system saves (XCR0); 0 without OSXSAVE.
uint64_t saved_state() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Linux gives AMX tile data only to processes that ask (arch_prctl ARCH_REQ_XCOMP_PERM, component 18).
bool amx_permitted() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

std::vector<Isa> detect() {
  std::vector<Isa> found = {Isa::generic};
  const Registers one = cpuid(1, 0), seven = cpuid(7, 0);
  const uint64_t saved = saved_state();
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;

  const bool avx2 = (saved & kYmm) == kYmm && bit(one.c, 12) && bit(one.c, 28) && bit(one.c, 29) && bit(seven.b, 5);
  if (!avx2) return found;
  found.push_back(Isa::avx2);

  const bool avx512 = (saved & kZmm) == kZmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) &&
                      bit(seven.b, 31) && bit(seven.c, 11);
  if (!avx512) return found;
  found.push_back(Isa::avx512);

  const bool amx = (saved & kTiles) == kTiles && bit(seven.d, 24) && bit(seven.d, 25);
  if (amx && amx_permitted()) found.push_back(Isa::amx);
  return found;
}

}  // namespace

std::string_view name_of(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> found = detect();
  return found;
}

bool available(Isa isa) { return std::ranges::count(available_isas(), isa) != 0; }

Isa isa_named(std::string_view name) {
  const auto* at = std::ranges::find(kNames, name);
  if (at == std::end(kNames))
    fail(ErrorKind::invalid_argument, "HEARTH_ISA: '{}' is none of generic, avx2, avx512, amx", name);
  const Isa isa = static_cast<Isa>(at - kNames);
  if (!available(isa))
    fail(ErrorKind::invalid_argument, "HEARTH_ISA: this CPU lacks {}; its best is {}", name,
         name_of(available_isas().back()));
  return isa;
}

Isa best_isa() {
  static const Isa isa = [] {
    const char* name = std::getenv("HEARTH_ISA");
    return name && *name ? isa_named(name) : available_isas().back();
  }();
  return isa;
}

Maker cpu_maker() {
  static const Maker maker = [] {
    const Registers r = cpuid(0, 0);  // "GenuineIntel" in b, d, c
    return r.b == 0x756e6547 && r.d == 0x49656e69 && r.c == 0x6c65746e ? Maker::intel : Maker::other;
  }();
  return maker;
}

}  // namespace hearth::cpu
