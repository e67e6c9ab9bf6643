#include "model/rope.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "base/error.h"

namespace hearth::model {
namespace {

std::string_view key_of(const RopeInput& in, std::string_view name) {
  const auto own = in.keys.find(name);
  return own == in.keys.end() ? name : std::string_view(own->second);
}

// "rope_type yarn", in the file's words.
std::string rule_of(const RopeInput& in) { return fmt::format("{} {}", key_of(in, "rope_type"), in.type); }

double number(const RopeInput& in, std::string_view key, std::optional<double> absent, const std::string& what) {
  const json::Value* v = in.numbers.get(key);
  if (v) return v->as_double(fmt::format("{}: {}", what, key_of(in, key)));
  if (!absent) fail(ErrorKind::corrupt_file, "{}: {} needs {}", what, rule_of(in), key_of(in, key));
  return *absent;
}

double positive(const RopeInput& in, std::string_view key, std::optional<double> absent, const std::string& what) {
  const double v = number(in, key, absent, what);
  if (!(v > 0) || !std::isfinite(v))
    fail(ErrorKind::corrupt_file, "{}: {} has {} {}, it must be positive", what, rule_of(in), key_of(in, key), v);
  return v;
}

std::vector<double> plain_frequencies(const RopeInput& in) {
  std::vector<double> f(static_cast<size_t>(in.rot / 2));
  for (size_t i = 0; i < f.size(); ++i)
    f[i] = std::pow(in.base, -2.0 * static_cast<double>(i) / static_cast<double>(in.rot));
  return f;
}

// Llama 3.1: long waves are divided by the factor, short ones kept, a linear blend between.
void llama3(const RopeInput& in, const std::string& what, std::vector<double>& f) {
  const double factor = positive(in, "factor", {}, what), low = number(in, "low_freq_factor", 1.0, what),
               high = number(in, "high_freq_factor", 4.0, what),
               S0 = positive(in, "original_max_position_embeddings", 8192.0, what);
  for (double& v : f) {
    const double wave = 2 * std::numbers::pi / v;
    if (wave > S0 / low) v /= factor;
    else if (wave >= S0 / high) {
      const double t = (S0 / wave - low) / (high - low);
      v *= (1 - t) / factor + t;
    }
  }
}

// What transformers calls attention_factor: on cos and sin; said by the config, or by the rule of the type.
double attention_factor(const RopeInput& in, double by_rule, const std::string& what) {
  const json::Value* said = in.numbers.get("attention_factor");
  return said && !said->is_null() ? positive(in, "attention_factor", {}, what) : by_rule;
}

// YaRN (Peng et al. 2023): blend by dimension, plus a factor on cos and sin. "truncate": false keeps the borders of the
// blend where they fall, between two dimensions.
float yarn(const RopeInput& in, const std::string& what, std::vector<double>& f) {
  const double factor = positive(in, "factor", {}, what), rot = static_cast<double>(in.rot),
               S0 = positive(in, "original_max_position_embeddings", static_cast<double>(in.context), what);
  const auto turn = [&](double beta) {
    return rot * std::log(S0 / (2 * std::numbers::pi * beta)) / (2 * std::log(in.base));
  };
  double lo = turn(positive(in, "beta_fast", 32.0, what)), hi = turn(positive(in, "beta_slow", 1.0, what));
  const json::Value* truncate = in.numbers.get("truncate");
  if (!truncate || truncate->as_bool(fmt::format("{}: {}", what, key_of(in, "truncate"))))
    lo = std::floor(lo), hi = std::ceil(hi);
  lo = std::max(0.0, lo), hi = std::min(rot - 1, hi);
  for (size_t i = 0; i < f.size(); ++i) {
    const double t = std::min(1.0, std::max(0.0, (static_cast<double>(i) - lo) / std::max(hi - lo, 1e-3)));
    f[i] *= (1 - t) + t / factor;
  }
  const auto m = [&](double c) { return factor > 1 ? 0.1 * c * std::log(factor) + 1 : 1.0; };
  const double by_rule = m(number(in, "mscale", 1.0, what)) / m(number(in, "mscale_all_dim", 0.0, what));
  return static_cast<float>(attention_factor(in, by_rule, what));
}

// LongRoPE (Ding et al. 2024): a factor a dimension; which list is decided once, by the trained maximum.
float longrope(const RopeInput& in, const std::string& what, std::vector<double>& f) {
  const double S0 = positive(in, "original_max_position_embeddings", {}, what);
  const bool is_long = static_cast<double>(in.context) > S0;
  const char* key = is_long ? "long_factor" : "short_factor";
  const json::Value* list = in.numbers.get(key);
  if (!list) fail(ErrorKind::corrupt_file, "{}: {} needs {}", what, rule_of(in), key_of(in, key));
  const std::string place = fmt::format("{}: {}", what, key_of(in, key));
  const json::Array& factors = list->as_array(place);
  if (factors.size() != f.size())
    fail(ErrorKind::corrupt_file, "{} has {} values, {} pairs turn", place, factors.size(), f.size());
  for (size_t i = 0; i < f.size(); ++i) f[i] /= factors[i].as_double(place);
  const double stretch = static_cast<double>(in.context) / S0;
  const double by_rule = stretch <= 1 ? 1.0 : std::sqrt(1 + std::log(stretch) / std::log(S0));
  return static_cast<float>(attention_factor(in, by_rule, what));
}

}  // namespace

graph::RopeSpec make_rope(const RopeInput& in, const std::string& what) {
  if (!(in.base > 0) || !std::isfinite(in.base))
    fail(ErrorKind::corrupt_file, "{}: the base of rotary embeddings ({}) is {}, it must be positive", what,
         key_of(in, "rope_theta"), in.base);
  if (in.rot <= 0 || in.rot % 2 != 0 || in.rot > in.Dh)
    fail(ErrorKind::corrupt_file, "{}: {} of {} head columns turn{}, an even number up to {} is needed", what, in.rot,
         in.Dh, in.rot == in.Dh ? "" : fmt::format(" ({})", key_of(in, "partial_rotary_factor")), in.Dh);
  graph::RopeSpec spec;
  spec.rot = in.rot;
  spec.pair_stride = in.interleaved ? 0 : in.rot / 2;
  std::vector<double> f = plain_frequencies(in);
  if (in.type == "linear") {
    const double factor = positive(in, "factor", {}, what);
    for (double& v : f) v /= factor;
  } else if (in.type == "dynamic") {
    spec.dynamic_base = in.base;
    spec.dynamic_factor = positive(in, "factor", {}, what);
    spec.dynamic_positions = static_cast<int64_t>(
        std::min(positive(in, "original_max_position_embeddings", static_cast<double>(in.context), what), 0x1p31));
  } else if (in.type == "llama3") {
    llama3(in, what, f);
  } else if (in.type == "yarn") {
    spec.attention_factor = yarn(in, what, f);
  } else if (in.type == "longrope") {
    spec.attention_factor = longrope(in, what, f);
  } else if (in.type == "proportional") {
    // Frequencies run over the whole head; only the first rot / 2 pairs of (i, i + Dh / 2) turn.
    const double factor = positive(in, "factor", 1.0, what);
    for (size_t i = 0; i < f.size(); ++i)
      f[i] = std::pow(in.base, -2.0 * static_cast<double>(i) / static_cast<double>(in.Dh)) / factor;
    spec.pair_stride = in.Dh / 2;
  } else if (in.type != "default" && in.type != "mrope") {
    fail(ErrorKind::invalid_argument,
         "{}: {} \"{}\" is unknown; supported: default, linear, dynamic, llama3, yarn, longrope, proportional, mrope",
         what, key_of(in, "rope_type"), in.type);
  }
  for (const double v : f) {
    if (!std::isfinite(static_cast<float>(v)))
      fail(ErrorKind::corrupt_file, "{}: {} gives a frequency of {}", what, rule_of(in), v);
    spec.inv_freq.push_back(static_cast<float>(v));
  }
  return spec;
}

}  // namespace hearth::model
