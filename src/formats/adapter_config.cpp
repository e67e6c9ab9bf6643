#include "formats/adapter_config.h"

#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "formats/byte_reader.h"
#include "formats/config.h"

namespace hearth::formats {
namespace {

constexpr double kScaleDefault = 20;  // mlx-lm's, where lora_parameters stands without a scale

[[noreturn]] void unsupported(const std::string& what, std::string_view field, const json::Value& value) {
  fail(ErrorKind::invalid_argument, "{}: {} is {}, which is not supported; supported are plain LoRA adapters", what,
       field, printable(json::dump(value)));
}

bool says_something(const json::Value& v) {
  if (v.is_bool()) return v.as_bool("");
  if (const json::Array* list = v.array()) return list->size() > 0;
  if (const json::Object* object = v.object()) return object->size() > 0;
  return !v.is_null();
}

// What would need more than the two factors, or another base than the model.
void refuse_others(const json::Value& config, const std::string& what) {
  if (const json::Value* type = config.get("fine_tune_type");
      type && type->as_string(what + ": fine_tune_type") != "lora")
    unsupported(what, "fine_tune_type", *type);
  if (const json::Value* type = config.get("peft_type"); type && type->as_string(what + ": peft_type") != "LORA")
    unsupported(what, "peft_type", *type);
  if (const json::Value* bias = config.get("bias"); bias && bias->as_string(what + ": bias") != "none")
    unsupported(what, "bias", *bias);
  for (const char* field : {"use_dora", "modules_to_save", "fan_in_fan_out", "lora_bias", "layer_replication",
                            "target_parameters", "trainable_token_indices", "use_qalora", "alora_invocation_tokens"})
    if (const json::Value* value = config.get(field); value && says_something(*value)) unsupported(what, field, *value);
  // These begin with factors taken out of the base weights, and add to what is left of them.
  if (const json::Value* init = config.get("init_lora_weights"))
    if (const std::string* name = init->string();
        name && (name->starts_with("pissa") || *name == "olora" || *name == "corda"))
      unsupported(what, "init_lora_weights", *init);
}

std::optional<double> number(const json::Value& object, const char* field, const std::string& what) {
  const json::Value* value = object.get(field);
  if (!value) return std::nullopt;
  const double x = value->as_double(fmt::format("{}: {}", what, field));
  if (!std::isfinite(x)) fail(ErrorKind::corrupt_file, "{}: {} is {}", what, field, x);
  return x;
}

std::optional<int64_t> rank(const json::Value& object, const char* field, const std::string& what) {
  const json::Value* value = object.get(field);
  if (!value) return std::nullopt;
  const int64_t r = value->as_int(fmt::format("{}: {}", what, field));
  if (r < 1) fail(ErrorKind::corrupt_file, "{}: {} is {}", what, field, r);
  return r;
}

// PEFT reads keys as regular expressions over the ends of module names; here they are names.
std::vector<std::pair<std::string, double>> pattern(const json::Value& config, const char* field,
                                                    const std::string& what) {
  std::vector<std::pair<std::string, double>> list;
  const json::Value* value = config.get(field);
  if (!value) return list;
  const std::string where = fmt::format("{}: {}", what, field);
  for (const auto& [key, each] : value->as_object(where)) {
    if (key.empty() || key.find_first_of("^$*+?()[]{}|\\") != std::string::npos)
      fail(ErrorKind::invalid_argument, "{}: \"{}\" is no module name; regular expressions are not supported", where,
           printable(key));
    const double x = each.as_double(where);
    if (!std::isfinite(x)) fail(ErrorKind::corrupt_file, "{}: {} is {}", where, printable(key), x);
    list.emplace_back(key, x);
  }
  return list;
}

// The first key that the module's path ends in, whole parts of it.
std::optional<double> find(const std::vector<std::pair<std::string, double>>& list, std::string_view module) {
  for (const auto& [key, value] : list)
    if (module == key || (module.ends_with(key) && module[module.size() - key.size() - 1] == '.')) return value;
  return std::nullopt;
}

}  // namespace

AdapterConfig parse_adapter_config(std::string_view text, const std::string& what) {
  const json::Value config = parse_config(text, what);
  refuse_others(config, what);
  AdapterConfig c;
  for (const char* field : {"base_model_name_or_path", "model", "source_model"})
    if (const json::Value* base = config.get(field); base && c.base.empty())
      c.base = base->as_string(fmt::format("{}: {}", what, field));
  if (const json::Value* revision = config.get("revision")) c.revision = revision->as_string(what + ": revision");
  for (const char* field : {"use_rslora", "rs_lora"})
    if (const json::Value* on = config.get(field)) c.rslora |= on->as_bool(fmt::format("{}: {}", what, field));
  if (const json::Value* parameters = config.get("lora_parameters")) {
    const std::string where = what + ": lora_parameters";
    parameters->as_object(where);
    c.scale = number(*parameters, "scale", where).value_or(kScaleDefault);
  }
  c.alpha = number(config, "lora_alpha", what);
  c.rank = rank(config, "r", what);
  c.alphas = pattern(config, "alpha_pattern", what);
  c.ranks = pattern(config, "rank_pattern", what);
  if (!c.scale && !(c.alpha && (c.rslora || c.rank)))
    fail(ErrorKind::corrupt_file, "{}: neither lora_parameters nor lora_alpha with r gives the scale", what);
  return c;
}

float AdapterConfig::scale_of(std::string_view module, int64_t R, const std::string& what) const {
  const double root = std::sqrt(static_cast<double>(R));
  const std::optional<double> own_alpha = alpha ? find(alphas, module).value_or(*alpha) : std::optional<double>();
  if (rslora) return static_cast<float>(own_alpha.value_or(scale.value_or(0)) / root);
  if (scale) return static_cast<float>(*scale);
  const double own_rank = find(ranks, module).value_or(static_cast<double>(rank.value_or(R)));
  if (own_rank != static_cast<double>(R))
    fail(ErrorKind::corrupt_file, "{}: rank {} for {}, whose factors have rank {}", what, own_rank, printable(module),
         R);
  return static_cast<float>(own_alpha.value_or(0) / own_rank);
}

}  // namespace hearth::formats
