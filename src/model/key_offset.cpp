#include <utility>

#include "base/error.h"
#include "model/forward.h"

namespace hearth::model {

bool has_key_offset(const ModelSpec& s, int64_t layer) {
  const int32_t rope = s.layers[static_cast<size_t>(layer)].rope;
  if (!s.qkv_bias || s.qk_norm || s.attention_cap != 0 || rope < 0) return false;
  const graph::RopeSpec& spec = s.ropes[static_cast<size_t>(rope)];
  return spec.pair_stride == spec.rot / 2 && spec.dynamic_base == 0;
}

std::vector<float> key_offset(const ModelSpec& s, int64_t layer, std::span<const float> bias) {
  if (!has_key_offset(s, layer)) return {};
  HEARTH_CHECK(std::cmp_equal(bias.size(), s.Hkv * s.Dh), "a bias of {} for {} heads of {}", bias.size(), s.Hkv, s.Dh);
  const graph::RopeSpec& rope = s.ropes[static_cast<size_t>(s.layers[static_cast<size_t>(layer)].rope)];
  std::vector<float> offset(bias.size());
  for (size_t i = 0; i < offset.size(); ++i) {
    const auto d = static_cast<int64_t>(i) % s.Dh;
    if (d >= rope.rot) offset[i] = -bias[i];  // does not turn at all
    else if (const float turn = rope.inv_freq[static_cast<size_t>(d % (rope.rot / 2))];
             turn * static_cast<float>(s.context) < 1)
      offset[i] = -bias[i] * rope.attention_factor;  // at position 0 the angle is 0
  }
  return offset;
}

}  // namespace hearth::model
