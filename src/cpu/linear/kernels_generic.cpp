// The matrix kernels in portable C++.
#include <cstdint>

#include "cpu/linear/share.h"
#include "cpu/target.h"

#define HEARTH_ISA generic
// clang-format off: each builds on those before it
#include "cpu/kernels/linear_ops_generic.inl"
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

namespace hearth::cpu {

const LinearKernels kLinearGeneric = {.quantize_s16 = generic::matrix::quantize_s16,
                                      .quantize_s8 = generic::matrix::quantize_s8,
                                      .run = generic::matrix::run,
                                      .pairs = generic::matrix::kPairs};

}  // namespace hearth::cpu
