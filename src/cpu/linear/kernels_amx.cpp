// The matrix kernels for AMX int8: the panels of integer cores. All else is AVX-512.
#include <immintrin.h>

#include <cstdint>

#include "cpu/linear/share.h"
#include "cpu/target.h"

#define HEARTH_ISA amx
HEARTH_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
// clang-format off: each builds on those before it
#include "cpu/kernels/linear_ops_avx512.inl"
#include "cpu/kernels/linear_ops_amx.inl"
#include "cpu/kernels/linear_quads.inl"
#include "cpu/kernels/linear_dots_planes.inl"
#include "cpu/kernels/linear_tiles_amx.inl"
#include "cpu/kernels/linear_panel.inl"
#include "cpu/kernels/linear_quantize.inl"
#include "cpu/kernels/linear_run_amx.inl"
// clang-format on
HEARTH_TARGET_END

namespace hearth::cpu {

const LinearKernels kLinearAmx = {.quantize_s16 = amx::matrix::quantize_s16,
                                  .quantize_s8 = amx::matrix::quantize_s8,
                                  .run = amx::matrix::run,
                                  .pairs = amx::matrix::kPairs};

}  // namespace hearth::cpu
