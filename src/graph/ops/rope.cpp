// rope_angles: for each row fp32 positions[m] * inv_freq[i]; out [M, rot] f32: cos for i < rot / 2, then sin, each
// times
//   the attention factor (Su et al. 2021). `dynamic` scales the base once a row's length so far passes S0.
// rope: pairs (x1, x2) -> r(x1 c - x2 s), r(x1 s + x2 c) in every head; columns that do not turn are unchanged.
//   in: x [M, H * Dh], angles [M, rot]
#include <cmath>

#include "graph/ops/common.h"

namespace hearth::graph {

static void angles_reference(const RefCall& c) {
  const RopeSpec& spec = c.program.ropes[static_cast<size_t>(c.op.attrs.rope)];
  const int64_t half = spec.rot / 2;
  RefValue& y = c.out();
  for (int64_t m = 0; m < y.rows; ++m) {
    const int32_t position = c.batch.positions[static_cast<size_t>(m)];
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * rope_inv_freq(spec, position, i);
      y.row(m)[i] = static_cast<float>(std::cos(double{angle})) * spec.attention_factor;
      y.row(m)[half + i] = static_cast<float>(std::sin(double{angle})) * spec.attention_factor;
    }
  }
}

static void rope_reference(const RefCall& c) {
  const RefValue &x = c.in(0), &angles = c.in(1);
  RefValue& y = c.out();
  const Attrs& a = c.op.attrs;
  const RopeSpec& spec = c.program.ropes[static_cast<size_t>(a.rope)];
  const int64_t half = spec.rot / 2;
  y.data = x.data;
  for (int64_t m = 0; m < x.rows; ++m)
    for (int64_t h = 0; h < a.H; ++h)
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = h * a.Dh + (spec.pair_stride ? i : 2 * i);
        const int64_t second = first + (spec.pair_stride ? spec.pair_stride : 1);
        const float cosine = angles.row(m)[i], sine = angles.row(m)[half + i];
        const float x1 = x.row(m)[first], x2 = x.row(m)[second];
        y.row(m)[first] = c.r(x1 * cosine - x2 * sine);
        y.row(m)[second] = c.r(x1 * sine + x2 * cosine);
      }
}

float rope_inv_freq(const RopeSpec& spec, int32_t position, int64_t i) {
  if (spec.dynamic_base <= 0 || position < spec.dynamic_positions) return spec.inv_freq[static_cast<size_t>(i)];
  const double length = position + 1.0, rot = static_cast<double>(spec.rot);
  const double stretch =
      spec.dynamic_factor * length / static_cast<double>(spec.dynamic_positions) - (spec.dynamic_factor - 1);
  const double base = spec.dynamic_base * std::pow(stretch, rot / (rot - 2));
  return static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / rot));
}

const OpInfo kRopeAngles = {
    .name = "rope_angles",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      ValueInfo y;
      y.cols = v.program.ropes[static_cast<size_t>(v.attrs().rope)].rot;
      return {y};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 20); },
    .reference = angles_reference,
};

const OpInfo kRope = {
    .name = "rope",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const Attrs& a = v.attrs();
      const RopeSpec& spec = v.program.ropes[static_cast<size_t>(a.rope)];
      require(a.H * a.Dh == v.in(0).cols, v, "x has {} columns, {} heads of {} are {}", v.in(0).cols, a.H, a.Dh,
              a.H * a.Dh);
      const int64_t last = spec.pair_stride ? spec.pair_stride + spec.rot / 2 : spec.rot;
      require(spec.rot % 2 == 0 && last <= a.Dh, v, "{} columns turn in heads of {}", last, a.Dh);
      require(v.in(1).cols == spec.rot, v, "the angles have {} columns, the rule needs {}", v.in(1).cols, spec.rot);
      return {like(v, v.in(0), v.in(0).cols)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 3); },
    .reference = rope_reference,
};

}  // namespace hearth::graph
