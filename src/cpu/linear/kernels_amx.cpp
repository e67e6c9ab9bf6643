// The matrix kernels for AMX int8: panels of integer cores; the rest is avx512.
#include <immintrin.h>

#include <cstdint>

#include "cpu/linear/share.h"
#include "cpu/target.h"

#define HEARTH_ISA amx
HEARTH_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
#include "cpu/kernels/linear_ops_amx.inl"
#include "cpu/kernels/linear_ops_avx512.inl"

#include "cpu/kernels/linear_dots_planes.inl"
#include "cpu/kernels/linear_panel.inl"
#include "cpu/kernels/linear_quads.inl"
#include "cpu/kernels/linear_quantize.inl"
#include "cpu/kernels/linear_run_amx.inl"
#include "cpu/kernels/linear_tiles_amx.inl"
HEARTH_TARGET_END

namespace hearth::cpu {

const LinearKernels kLinearAmx = {amx::matrix::quantize_s16, amx::matrix::quantize_s8, amx::matrix::run,
                                  amx::matrix::kPairs};

}  // namespace hearth::cpu
