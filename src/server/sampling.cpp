#include "server/sampling.h"

#include <charconv>

#include "base/error.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

class Fields {
 public:
  Fields(const json::Object& request, const json::Object& defaults) : request_(request), defaults_(defaults) {}

  const json::Value* find(std::string_view key) const {
    for (const json::Object* from : {&request_, &defaults_})
      if (const json::Value* value = from->find(key); value && !value->is_null()) return value;
    return nullptr;
  }
  void number(std::string_view key, double& into) const {
    if (const json::Value* value = find(key)) into = number_of(key, *value);
  }
  void whole(std::string_view key, int64_t& into) const {
    if (const json::Value* value = find(key)) into = whole_of(key, *value);
  }

  static double number_of(std::string_view key, const json::Value& value) {
    if (!value.is_number()) fail(ErrorKind::invalid_argument, "{} must be a number, not {}", key, value.type_name());
    return value.as_double(key);
  }
  static int64_t whole_of(std::string_view key, const json::Value& value) {
    if (!value.is_int()) fail(ErrorKind::invalid_argument, "{} must be a whole number, not {}", key, value.type_name());
    return value.as_int(key);
  }

 private:
  const json::Object &request_, &defaults_;
};

std::vector<std::pair<int32_t, float>> biases(const json::Value& value, int64_t V) {
  constexpr auto kWords = "logit_bias must be a dict of int to float";
  const json::Object* object = value.object();
  if (!object) fail(ErrorKind::invalid_argument, "{}", kWords);
  std::vector<std::pair<int32_t, float>> list;
  for (const auto& [key, bias] : *object) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !bias.is_number())
      fail(ErrorKind::invalid_argument, "{}", kWords);
    if (id < 0 || id >= V)
      throw RequestError("logit_bias", fmt::format("logit_bias names token {}, the vocabulary has {}", id, V));
    list.emplace_back(id, static_cast<float>(bias.as_double(key)));
  }
  return list;
}

void hlg(const json::Value& value, decode::SamplerOptions& o) {
  const json::Object* object = value.object();
  if (!object) fail(ErrorKind::invalid_argument, "hlg must be an object, not {}", value.type_name());
  o.hlg = true;
  for (const auto& [key, v] : *object) {
    const std::string name = "hlg." + key;
    if (v.is_null()) continue;
    if (key == "enabled") {
      if (!v.is_bool()) fail(ErrorKind::invalid_argument, "{} must be true or false", name);
      o.hlg = v.as_bool(name);
    } else if (key == "width") {
      o.hlg_width = Fields::number_of(name, v);
    } else if (key == "toe") {
      o.hlg_toe = Fields::number_of(name, v);
    } else if (key == "shoulder") {
      o.hlg_shoulder = Fields::number_of(name, v);
    } else if (key == "pivot_offset") {
      o.hlg_pivot_offset = Fields::number_of(name, v);
    } else if (key == "pivot") {
      if (!v.string()) fail(ErrorKind::invalid_argument, "{} must be a string, not {}", name, v.type_name());
      o.hlg_pivot = decode::parse_hlg_pivot(*v.string());
    }
  }
}

// {points: [{x_pct, y_pct}, ...]} (spec server 19).
void curve(const json::Value& value, decode::SamplerOptions& o) {
  const json::Value* points = value.get("points");
  if (!points || !points->array())
    fail(ErrorKind::invalid_argument, "curve.points must be an array of {{x_pct, y_pct}}");
  for (const json::Value& point : *points->array()) {
    const json::Value *x = point.get("x_pct"), *y = point.get("y_pct");
    if (!x || !y || !x->is_number() || !y->is_number())
      fail(ErrorKind::invalid_argument, "curve.points must be an array of {{x_pct, y_pct}}");
    o.curve.push_back({x->as_double("x_pct"), y->as_double("y_pct")});
  }
}

}  // namespace

decode::SamplerOptions sampler_options(const json::Object& request, const json::Object& defaults, int64_t V) {
  const Fields fields(request, defaults);
  decode::SamplerOptions o;
  o.temperature = 0.7;
  fields.number("temperature", o.temperature);
  fields.number("top_p", o.top_p);
  fields.whole("top_k", o.top_k);
  fields.number("min_p", o.min_p);
  fields.number("xtc_probability", o.xtc_probability);
  fields.number("xtc_threshold", o.xtc_threshold);
  fields.number("repetition_penalty", o.repetition_penalty);
  fields.number("presence_penalty", o.presence_penalty);
  fields.number("frequency_penalty", o.frequency_penalty);
  fields.whole("repetition_context_size", o.repetition_context);
  fields.whole("presence_context_size", o.presence_context);
  fields.whole("frequency_context_size", o.frequency_context);
  if (const json::Value* seed = fields.find("seed")) o.seed = static_cast<uint64_t>(Fields::whole_of("seed", *seed));
  if (const json::Value* bias = fields.find("logit_bias")) o.logit_bias = biases(*bias, V);
  // The two curves exclude each other: one that the request has puts the other's default out. What the request leaves
  // out of its hlg is the server's.
  const auto given = [](const json::Object& from, std::string_view key) {
    const json::Value* value = from.find(key);
    return value && !value->is_null() ? value : nullptr;
  };
  const json::Value *own_hlg = given(request, "hlg"), *own_curve = given(request, "curve");
  if (const json::Value* value = given(defaults, "hlg"); value && (own_hlg || !own_curve)) hlg(*value, o);
  if (own_hlg) hlg(*own_hlg, o);
  if (const json::Value* value = own_hlg ? own_curve : fields.find("curve")) curve(*value, o);
  if (o.top_p == 0) o.top_p = 1;  // off, as clients write it
  decode::validate(o, V);
  return o;
}

}  // namespace hearth::server
