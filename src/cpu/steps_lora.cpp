// lora by slot: y = r(y + r(s ((x A) B))) in place, adapter by adapter.
//
// Up to kFewRows rows of an adapter: every member makes x A of all of them for itself. More: the members share the rows
// out, and meet once before each goes on with its part of y. x A then lies in one of two buffers in turn: who is in the
// next step may write the other one while somebody still reads this one, and nobody is two steps ahead.
#include <algorithm>

#include "cpu/steps.h"
#include "graph/lora_layout.h"

namespace hearth::cpu {

void lora_slots_step(const Run& run, const Step& s, int member, int& turn) noexcept {
  if (run.adapters.empty()) return;
  const Part p = part_of_step(run, s, member);
  const float* x = pointer(run, s.z, member);
  float* y = pointer(run, s.y, member);
  const int64_t n = run.team.size(), ldt = run.space.lora_stride;
  for (const AdapterRows::Group& group : run.adapters.groups()) {
    const AdapterRows::Factors& f = run.adapters.factors(group.slot, s.attrs.module);
    if (!f.a) continue;
    const std::span<const int32_t> rows =
        run.adapters.rows().subspan(static_cast<size_t>(group.begin), static_cast<size_t>(group.end - group.begin));
    const int64_t count = group.end - group.begin;
    const bool shared = count > kFewRows;
    float* t = shared ? run.space.lora.floats() + turn * run.space.lora_floats
                      : run.space.members[static_cast<size_t>(member)].lora.floats();
    const int64_t begin = shared ? count * member / n : 0, end = shared ? count * (member + 1) / n : count;
    run.kernels.lora_down({.rows = rows.data() + begin,
                           .count = end - begin,
                           .x = x,
                           .ldx = s.z.stride,
                           .K = s.z.cols,
                           .a = f.a,
                           .blocks = graph::lora_blocks_a(f.R),
                           .t = t + begin * ldt,
                           .ldt = ldt});
    if (shared) {
      run.team.barrier(member);
      turn = 1 - turn;
    }
    const auto first = std::ranges::lower_bound(rows, p.m_begin), last = std::ranges::lower_bound(rows, p.m_end);
    if (p.cols() <= 0 || first >= last) continue;
    run.kernels.lora_up({.rows = &*first,
                         .count = last - first,
                         .t = t + (first - rows.begin()) * ldt,
                         .ldt = ldt,
                         .R = f.R,
                         .b = f.b + p.c_begin * f.R,  // shares begin at multiples of 32 columns
                         .n = p.cols(),
                         .scale = f.scale,
                         .y = y + p.c_begin,
                         .ldy = s.y.stride,
                         .r = s.r});
  }
}

}  // namespace hearth::cpu
