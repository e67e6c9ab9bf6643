// The matrix kernels for AVX2.
#include <immintrin.h>

#include <cstdint>

#include "cpu/linear/share.h"
#include "cpu/target.h"

#define HEARTH_ISA avx2
HEARTH_TARGET("avx2,fma,f16c")
// clang-format off: each builds on those before it
#include "cpu/kernels/linear_ops_avx2.inl"
#include "cpu/kernels/linear_quads.inl"
#include "cpu/kernels/linear_dots_pairs.inl"
#include "cpu/kernels/linear_one_row_pairs.inl"
#include "cpu/kernels/linear_one_row.inl"
#include "cpu/kernels/linear_direct.inl"
#include "cpu/kernels/linear_panel.inl"
#include "cpu/kernels/linear_f32.inl"
#include "cpu/kernels/linear_quantize.inl"
#include "cpu/kernels/linear_run.inl"
// clang-format on
HEARTH_TARGET_END

namespace hearth::cpu {

const LinearKernels kLinearAvx2 = {.quantize_s16 = avx2::matrix::quantize_s16,
                                   .quantize_s8 = avx2::matrix::quantize_s8,
                                   .run = avx2::matrix::run,
                                   .pairs = avx2::matrix::kPairs};

}  // namespace hearth::cpu
