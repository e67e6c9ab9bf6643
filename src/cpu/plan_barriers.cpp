#include <algorithm>

#include "cpu/plan.h"

namespace hearth::cpu {

bool BarrierPlanner::meet(const Access& a, const Access& b) {
  if (a.area != b.area || a.index != b.index || a.end <= b.begin || b.end <= a.begin) return false;
  if (!a.write && !b.write) return false;
  const bool same_part = a.share == b.share && (a.share == Share::rows || a.share == Share::blocks) &&
                         a.share_N == b.share_N && a.offset == b.offset && a.stride == b.stride && a.rows == b.rows;
  return !same_part;
}

std::vector<BarrierPlanner::Access> BarrierPlanner::accesses_of(const Step& step) const {
  std::vector<Access> all;
  const auto value = [&](const Ref& ref, bool write, Share share) {
    if (ref.place != Place::shared && ref.place != Place::result) return;
    const int64_t rows = graph::rows_max(ref.rows, limits_);
    all.push_back({.area = ref.place == Place::shared ? Area::arena : Area::result,
                   .index = ref.index,
                   .begin = ref.offset,
                   .end = ref.offset + (rows - 1) * ref.stride + ref.cols,
                   .write = write,
                   .share = share,
                   .share_N = step.share_N,
                   .offset = ref.offset,
                   .stride = ref.stride,
                   .rows = ref.rows});
  };
  const auto whole = [&](Area area, int32_t index, bool write, Share share, int64_t stride) {
    all.push_back({.area = area,
                   .index = index,
                   .begin = 0,
                   .end = 1,
                   .write = write,
                   .share = share,
                   .share_N = step.share_N,
                   .offset = 0,
                   .stride = stride,
                   .rows = step.rows});
  };

  Share x = step.share, z = step.share;
  switch (step.kind) {
    case StepKind::quantize:
      if (step.share != Share::own) whole(Area::activations, step.slot, true, step.share, step.x.cols);
      break;
    case StepKind::linear:  // integer cores read whole rows of activations, the f32 core whole rows of x
      x = Share::any;
      if (step.slot >= 0) whole(Area::activations, step.slot, false, Share::any, step.x.cols);
      if (step.accumulate) value(step.y, false, step.share);
      break;
    case StepKind::lora:
      if (step.share == Share::blocks) z = Share::any;
      break;
    case StepKind::lora_slots: z = Share::any; break;
    case StepKind::kv_append:
      x = z = Share::any;
      whole(Area::kv, step.attrs.layer, true, Share::any, 0);
      break;
    case StepKind::attention:
      x = z = Share::any;
      value(step.k, false, Share::any);
      if (step.attrs.layer >= 0) whole(Area::kv, step.attrs.layer, false, Share::any, 0);
      whole(Area::partials, 0, true, Share::any, 0);
      break;
    case StepKind::gather_rows:
    case StepKind::pool: x = Share::any; break;
    default: break;
  }
  value(step.x, false, x);
  value(step.z, false, z);
  value(step.y, true, step.share);
  return all;
}

bool BarrierPlanner::would_wait(const Step& step) const {
  const std::vector<Access> mine = accesses_of(step);
  return std::ranges::any_of(
      mine, [&](const Access& a) { return std::ranges::any_of(open_, [&](const Access& b) { return meet(a, b); }); });
}

void BarrierPlanner::add(Step& step) {
  step.barrier = would_wait(step);
  if (step.barrier) open_.clear();
  const std::vector<Access> mine = accesses_of(step);
  open_.insert(open_.end(), mine.begin(), mine.end());
}

}  // namespace hearth::cpu
