#include "model/spec.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace hearth::model {

namespace {

struct Family {
  std::string_view model_type;
  Support support;
};
// Supported ones stand in the tables of cases of the oracle tests.
constexpr Family kFamilies[] = {
    {"llama", Support::supported}, {"mistral", Support::supported},     {"qwen2", Support::supported},
    {"qwen3", Support::supported}, {"gemma3", Support::supported},      {"gemma3_text", Support::supported},
    {"bert", Support::supported},  {"xlm-roberta", Support::supported},
};

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  return names;
}

std::string_view name_of(Support support) { return support == Support::supported ? "supported" : "generic"; }

Support support_of(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return family.support;
  HEARTH_CHECK(false, "{} is no family", model_type);
  return Support::generic;
}

void add_end_id(int64_t id, const std::string& place, ModelSpec& s) {
  if (id < INT32_MIN || id > INT32_MAX) fail(ErrorKind::corrupt_file, "{}: {} is no token id", place, id);
  s.end_ids.push_back(static_cast<int32_t>(id));
}

void add_end_ids(const json::Value* ids, const std::string& place, ModelSpec& s) {
  if (!ids) return;
  if (const json::Array* list = ids->array())
    for (const json::Value& id : *list) add_end_id(id.as_int(place), place, s);
  else add_end_id(ids->as_int(place), place, s);
}

void check_extents(const ModelSpec& s) {
  struct Extent {
    const char* name;
    int64_t value, max;
  };
  const Extent extents[] = {{"layers", s.L, 4096},        {"hidden size", s.D, 1 << 20},  {"heads", s.H, 1 << 16},
                            {"KV heads", s.Hkv, 1 << 16}, {"head width", s.Dh, 1 << 14},  {"MLP width", s.F, 1 << 22},
                            {"vocabulary", s.V, 1 << 24}, {"context", s.context, 1 << 28}};
  for (const Extent& e : extents)
    if (e.value <= 0 || e.value > e.max)
      fail(ErrorKind::corrupt_file, "{}: {} is {}, expected 1 to {}", s.file, e.name, e.value, e.max);
  // Together, so that bytes of a KV cache cannot wrap: 8 bytes a value and position, 2^28 positions.
  constexpr int64_t kKvColumnsMax = int64_t{1} << 28;
  if (s.L * s.Hkv * s.Dh > kKvColumnsMax)
    fail(ErrorKind::corrupt_file, "{}: {} layers of {} KV heads of {} are more than {} columns", s.file, s.L, s.Hkv,
         s.Dh, kKvColumnsMax);
}

void check(const ModelSpec& s) {
  check_extents(s);
  if (s.H % s.Hkv != 0)
    fail(ErrorKind::corrupt_file, "{}: {} query heads do not share {} KV heads evenly", s.file, s.H, s.Hkv);
  if (!(s.eps >= 0 && s.eps < 1)) fail(ErrorKind::corrupt_file, "{}: norm epsilon is {}", s.file, s.eps);
  if (!std::isfinite(s.attention_scale) || !(s.attention_scale >= 0))
    fail(ErrorKind::corrupt_file, "{}: query_pre_attn_scalar makes the scale of attention {}", s.file,
         s.attention_scale);
  for (const auto& [name, cap] :
       {std::pair{"attn_logit_softcapping", s.attention_cap}, std::pair{"final_logit_softcapping", s.logit_cap}})
    if (!std::isfinite(cap) || !(cap >= 0))
      fail(ErrorKind::corrupt_file, "{}: {} is {}, expected 0 (none) or a positive number", s.file, name, cap);
  if (static_cast<int64_t>(s.layers.size()) != s.L)
    fail(ErrorKind::corrupt_file, "{}: layer_types has {} entries for {} layers", s.file, s.layers.size(), s.L);
  if (s.encoder() && (s.token_types < 1 || s.first_position < 0 || s.position_rows - s.first_position < s.context))
    fail(ErrorKind::corrupt_file, "{}: tables of {} types and {} positions from {} on do not serve a context of {}",
         s.file, s.token_types, s.position_rows, s.first_position, s.context);
  for (size_t i = 0; i < s.layers.size(); ++i)
    if (s.layers[i].window < 0)
      fail(ErrorKind::corrupt_file, "{}: the window of layer {} is {}", s.file, i, s.layers[i].window);
}

}  // namespace hearth::model
