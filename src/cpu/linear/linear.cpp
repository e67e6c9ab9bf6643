#include "cpu/linear.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/linear/heuristics.h"
#include "cpu/linear/share.h"

namespace hearth::cpu {
namespace {

const LinearKernels& kernels_of(Isa isa) {
  switch (isa) {
    case Isa::generic: return kLinearGeneric;
    case Isa::avx2: return kLinearAvx2;
    case Isa::avx512: return kLinearAvx512;
    case Isa::amx: break;
  }
  return kLinearAmx;
}

}  // namespace

int64_t act_row_bytes(Core core, int64_t K, Isa isa) {
  return core == Core::f32 ? 0 : act_layout(core, K, kernels_of(isa).pairs).row;
}

void quantize_rows(const QuantizeCall& call, int64_t begin, int64_t end) noexcept {
  HEARTH_CHECK(call.core != Core::f32 && call.K % kUnit == 0, "K = {}", call.K);
  const LinearKernels& kernels = kernels_of(call.isa);
  const ActLayout layout = act_layout(call.core, call.K, kernels.pairs);
  const auto quantize = call.core == Core::s16 ? kernels.quantize_s16 : kernels.quantize_s8;
  for (int64_t m = begin; m < end; ++m) quantize(call.x + m * call.ldx, call.K, layout, call.act + m * layout.row);
}

int64_t linear_scratch_bytes(int64_t M_max, int64_t K) {
  const int64_t constants = 3 * aligned64((K / 16 + 1) * 4);  // int32 and two fp32 a group and row of x
  return kPanelBytes + kFoldBytes + kTotalBytes + std::min(M_max, kTokenBlock) * constants;
}

void linear(const LinearCall& call, int member, int members) noexcept {
  const Matrix& w = *call.w;
  HEARTH_CHECK(w.supports(call.core), "{} weights in an integer core", name_of(w.format()));
  if (call.M <= 0) return;
  const LinearKernels& kernels = kernels_of(call.isa);
  const LinearPart part = part_of(w.N(), call.M, split_linear(w.N(), call.M, members), member);
  if (part.block_begin == part.block_end || part.m_begin == part.m_end) return;
  kernels.run({.shape = shape_of(w.format()),
               .core = call.core,
               .N = w.N(),
               .K = w.K(),
               .block_begin = part.block_begin,
               .block_end = part.block_end,
               .m_begin = part.m_begin,
               .m_end = part.m_end,
               .blocks = reinterpret_cast<const uint8_t*>(w.bytes().data() + kHeaderBytes),
               .x = call.x,
               .ldx = call.ldx,
               .act = call.act,
               .layout = act_layout(call.core, w.K(), kernels.pairs),
               .y = call.y,
               .ldy = call.ldy,
               .bias = call.bias,
               .accumulate = call.accumulate,
               .scratch = call.scratch,
               .ahead = fetch_ahead(call.isa, cpu_maker())});
}

}  // namespace hearth::cpu
