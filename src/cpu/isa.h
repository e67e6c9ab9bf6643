// Instruction sets of the CPU kernels and their detection. Pure functions of the machine and the environment.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth::cpu {

//   generic  portable C++
//   avx2     AVX2, FMA, F16C
//   avx512   AVX-512 F, BW, VL, DQ, VNNI (and all of avx2)
//   amx      AMX tile and int8, granted by the kernel (and all of avx512)
enum class Isa : uint8_t { generic, avx2, avx512, amx };

std::string_view name_of(Isa isa);

enum class Maker : uint8_t { intel, other };
Maker cpu_maker();  // of this CPU

// What this CPU and operating system run, worst first; always contains generic. Asks the kernel for AMX state.
const std::vector<Isa>& available_isas();
bool available(Isa isa);

// The set kernels use: the last of available_isas(), or the one that HEARTH_ISA names (read once).
// Throws Error{invalid_argument} if HEARTH_ISA names no set, or one that this CPU lacks.
Isa best_isa();

// What HEARTH_ISA = `name` means: the set of that name. Throws like best_isa().
Isa isa_named(std::string_view name);

}  // namespace hearth::cpu
