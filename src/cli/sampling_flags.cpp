#include "cli/sampling_flags.h"

#include "base/error.h"
#include "base/random.h"
#include "cli/units.h"

namespace hearth::cli {

std::pair<int32_t, float> parse_logit_bias(const std::string& text) {
  const size_t equal = text.find('=');
  const auto id = parse_integer(text.substr(0, equal));
  const auto bias = equal == std::string::npos ? std::nullopt : parse_number(text.substr(equal + 1));
  if (!id || !bias || *id < 0 || *id > INT32_MAX)
    fail(ErrorKind::invalid_argument, "--logit-bias is '{}', expected a token id and a number: 12=-3.5", text);
  return {static_cast<int32_t>(*id), static_cast<float>(*bias)};
}

decode::CurvePoint parse_curve_point(const std::string& text) {
  const size_t equal = text.find('=');
  const auto x = parse_number(text.substr(0, equal));
  const auto y = equal == std::string::npos ? std::nullopt : parse_number(text.substr(equal + 1));
  if (!x || !y) fail(ErrorKind::invalid_argument, "--curve is '{}', expected two percentages: 0.5=2", text);
  return {*x, *y};
}

decode::GenerateOptions sampling_options(const Context& context) {
  const Args& args = context.args();
  decode::GenerateOptions options;
  options.max_tokens = *args.integer("max-tokens");
  decode::SamplerOptions& s = options.sampler;
  s.temperature = *args.number("temperature");
  s.top_p = *args.number("top-p");
  s.top_k = *args.integer("top-k");
  s.min_p = *args.number("min-p");
  s.xtc_probability = *args.number("xtc-probability");
  s.xtc_threshold = *args.number("xtc-threshold");
  s.repetition_penalty = *args.number("repetition-penalty");
  s.presence_penalty = *args.number("presence-penalty");
  s.frequency_penalty = *args.number("frequency-penalty");
  s.repetition_context = *args.integer("repetition-context");
  s.presence_context = *args.integer("presence-context");
  s.frequency_context = *args.integer("frequency-context");
  for (const std::string& bias : args.texts("logit-bias")) s.logit_bias.push_back(parse_logit_bias(bias));
  s.hlg = args.on("hlg-sampling");
  s.hlg_width = *args.number("hlg-width");
  s.hlg_toe = *args.number("hlg-toe");
  s.hlg_shoulder = *args.number("hlg-shoulder");
  s.hlg_pivot_offset = *args.number("hlg-pivot-offset");
  s.hlg_pivot = decode::parse_hlg_pivot(*args.text("hlg-pivot"));
  for (const std::string& point : args.texts("curve")) s.curve.push_back(parse_curve_point(point));
  // 63 bits: whatever is reported can be given back as --seed.
  s.seed = static_cast<uint64_t>(args.integer("seed").value_or(static_cast<int64_t>(entropy64() >> 1)));
  validate(s, INT32_MAX);  // before anything is loaded; the vocabulary of --logit-bias is checked with the model
  return options;
}

bool draws(const decode::SamplerOptions& options) { return !options.greedy(); }

void note_seed(const Context& context, const decode::SamplerOptions& options) {
  if (draws(options) && !context.args().given("seed")) context.note("seed {}", options.seed);
}

}  // namespace hearth::cli
