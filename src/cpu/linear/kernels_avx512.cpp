// The matrix kernels for AVX-512 with VNNI.
#include <immintrin.h>

#include <cstdint>

#include "cpu/linear/share.h"
#include "cpu/target.h"

#define HEARTH_ISA avx512
HEARTH_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
// clang-format off: each builds on those before it
#include "cpu/kernels/linear_ops_avx512.inl"
#include "cpu/kernels/linear_quads.inl"
#include "cpu/kernels/linear_dots_planes.inl"
#include "cpu/kernels/linear_tiles_planes.inl"
#include "cpu/kernels/linear_one_row.inl"
#include "cpu/kernels/linear_direct.inl"
#include "cpu/kernels/linear_panel.inl"
#include "cpu/kernels/linear_f32.inl"
#include "cpu/kernels/linear_quantize.inl"
#include "cpu/kernels/linear_run.inl"
// clang-format on
HEARTH_TARGET_END

namespace hearth::cpu {

const LinearKernels kLinearAvx512 = {.quantize_s16 = avx512::matrix::quantize_s16,
                                     .quantize_s8 = avx512::matrix::quantize_s8,
                                     .run = avx512::matrix::run,
                                     .pairs = avx512::matrix::kPairs};

}  // namespace hearth::cpu
