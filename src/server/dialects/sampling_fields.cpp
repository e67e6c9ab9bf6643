#include "server/dialects/sampling_fields.h"

#include <charconv>
#include <cmath>

#include "decode/transfer_curve.h"
#include "server/http/problem.h"
#include "server/limits.h"

namespace hearth::server {
namespace {

constexpr size_t kStopsMax = most::kStop, kStopBytesMax = most::kStopBytes, kBiasesMax = most::kLogitBias;

constexpr Field kFields[] = {
    {"temperature", FieldType::number, "0 takes the likeliest token [0.7]", 0, 5},
    {"top_p", FieldType::number, "smallest set of tokens whose probability reaches it", 0, 1},
    {"top_k", FieldType::integer, "only the likeliest tokens; 0: all", 0, 1e6},
    {"min_p", FieldType::number, "only tokens at least so many times as likely as the likeliest", 0, 1},
    {"seed", FieldType::integer, "the same seed draws the same answer", -9.2e18, 9.2e18},
    {"xtc_probability", FieldType::number, "how often the likeliest tokens are left out", 0, 1},
    {"xtc_threshold", FieldType::number, "what counts as likely there", 0, 1},
    {"logit_bias",
     FieldType::object,
     "added to logits: {id: float}",
     -kUnbounded,
     kUnbounded,
     {},
     false,
     "logit_bias must be a dict of int to float"},
    {"repetition_penalty", FieldType::number, "divides logits of tokens that stand in the context", 0, 100},
    {"repetition_context_size", FieldType::integer, "last tokens that count; 0: all", 0, 1 << 28},
    {"presence_penalty", FieldType::number, "taken off logits of tokens that stand there", -100, 100},
    {"presence_context_size", FieldType::integer, "last tokens that count; 0: all", 0, 1 << 28},
    {"frequency_penalty", FieldType::number, "the same, times how often", -100, 100},
    {"frequency_context_size", FieldType::integer, "last tokens that count; 0: all", 0, 1 << 28},
    {"hlg", FieldType::object, "the HLG curve in place of temperature and filters"},
    {"curve", FieldType::object, "a transfer curve: points of {x_pct, y_pct}"},
    {"adapter", FieldType::string, "an adapter, a stack a+b, or none", 0, 1024},
    {"reasoning_effort", FieldType::string, "none turns thinking off", -kUnbounded, kUnbounded,
     "none|minimal|low|medium|high|xhigh"},
    {"reasoning_budget", FieldType::integer, "tokens of reasoning, behind which it is closed", 0, 1 << 28},
    {"any_whitespace", FieldType::boolean, "true: white space between the tokens of a JSON format is free"},
    {"chat_template_kwargs", FieldType::object, "further variables of the chat template"},
    {"keep_alive", FieldType::string_or_number, "how long the model stays loaded: seconds or 10m; -1: for good"},
    {"speculation", FieldType::boolean, "false: no drafts"},
};

// Fields that go to the sampler by their own names.
constexpr std::string_view kSampler[] = {"temperature",
                                         "top_p",
                                         "top_k",
                                         "min_p",
                                         "xtc_probability",
                                         "xtc_threshold",
                                         "repetition_penalty",
                                         "repetition_context_size",
                                         "presence_penalty",
                                         "presence_context_size",
                                         "frequency_penalty",
                                         "frequency_context_size",
                                         "hlg",
                                         "curve"};

void check_biases(const json::Object& bias) {
  if (bias.size() > kBiasesMax)
    throw RequestError("logit_bias",
                       fmt::format("logit_bias must have at most {} entries, not {}", kBiasesMax, bias.size()));
  for (const auto& [key, value] : bias) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !value.is_number() ||
        !std::isfinite(static_cast<float>(value.as_double(key))))
      throw RequestError("logit_bias", "logit_bias must be a dict of int to float");
  }
}

// Members that the sampler reads; what it would refuse is refused here, with the field's name.
void check_hlg(const json::Value& hlg) {
  static constexpr Field kMembers[] = {
      {"enabled", FieldType::boolean, ""},
      {"width", FieldType::number, "", 0, 1e300},
      {"shoulder", FieldType::number, "", 1e-300, 1e300},
      {"toe", FieldType::number, "", 1e-300, 1e300},
      {"pivot_offset", FieldType::number, "", -1e300, 1e300},
      {"pivot", FieldType::string, "", -kUnbounded, kUnbounded, "top|entropy|median"},
  };
  try {
    check_fields(*hlg.object(), kMembers);
  } catch (const RequestError& error) {
    throw RequestError("hlg", fmt::format("hlg.{}", error.what()));
  }
}

bool is_on(const json::Value* hlg) {
  if (!hlg) return false;
  const json::Value* enabled = hlg->get("enabled");
  return !enabled || enabled->is_null() || enabled->as_bool("enabled");
}

}  // namespace

void check_curve(const json::Value& curve, std::string_view param) {
  const json::Value* points = curve.get("points");
  const std::string name(param);
  if (!points || !points->array())
    throw RequestError(name, fmt::format("{} must have points, an array of {{x_pct, y_pct}}", param));
  std::vector<decode::CurvePoint> list;
  for (size_t i = 0; i < points->array()->size(); ++i) {
    const json::Value& point = (*points->array())[i];
    const json::Value *x = point.get("x_pct"), *y = point.get("y_pct");
    if (!x || !y || !x->is_number() || !y->is_number())
      throw RequestError(name, fmt::format("{}: point {} must have x_pct and y_pct, two numbers", param, i + 1));
    list.push_back({x->as_double("x_pct"), y->as_double("y_pct")});
  }
  try {
    decode::TransferCurve{list};
  } catch (const Error& error) {
    throw RequestError(name, fmt::format("{}: {}", param, error.what()));
  }
}

std::span<const Field> sampling_fields() { return kFields; }

void read_sampling(const json::Object& body, Generation& g) {
  check_fields(body, kFields);
  const json::Value *hlg = present(body, "hlg"), *curve = present(body, "curve");
  if (hlg) check_hlg(*hlg);
  if (curve) check_curve(*curve, "curve");
  if (curve && is_on(hlg)) throw RequestError("curve", "hlg and curve are both given, one of them can draw");
  if (const json::Value* penalty = present(body, "repetition_penalty"))
    if (const double c = penalty->as_double("repetition_penalty"); c != 0 && c < 0.01)
      throw RequestError("repetition_penalty",
                         fmt::format("repetition_penalty must be 0 (off) or between 0.01 and 100, not {}", c));
  for (const std::string_view key : kSampler)
    if (const json::Value* value = present(body, key)) g.sampling[key] = *value;
  if (const json::Value* seed = present(body, "seed")) g.sampling["seed"] = seed->as_int("seed") & INT64_MAX;
  if (const json::Value* bias = present(body, "logit_bias")) {
    check_biases(*bias->object());
    g.sampling["logit_bias"] = *bias;
  }
  if (const json::Value* adapter = present(body, "adapter")) g.adapter = *adapter->string();
  if (const json::Value* kwargs = present(body, "chat_template_kwargs")) {
    for (const auto& [key, value] : *kwargs->object()) {
      if (key == "messages" || key == "tools" || key == "documents" || key == "add_generation_prompt" ||
          key.ends_with("_token"))
        throw RequestError("chat_template_kwargs", fmt::format("chat_template_kwargs cannot set {}", key));
      if (key == "enable_thinking" && value.is_bool()) g.thinking = value.as_bool(key);
      else g.template_kwargs[key] = value;
    }
  }
  if (const json::Value* effort = present(body, "reasoning_effort")) set_effort(g, *effort->string());
  if (const json::Value* budget = present(body, "reasoning_budget"))
    g.reasoning_budget = budget->as_int("reasoning_budget");
  if (const json::Value* any = present(body, "any_whitespace")) g.any_whitespace = any->as_bool("any_whitespace");
}

void set_effort(Generation& g, const std::string& effort) {
  g.reasoning_effort = effort;
  g.thinking = effort != "none";
}

std::vector<std::string> read_stops(const json::Value& value, std::string_view param) {
  std::vector<std::string> stops;
  const auto add = [&](const std::string& stop) {
    if (stop.empty() || stop.size() > kStopBytesMax)
      throw RequestError(std::string(param), fmt::format("{}: a stop string must have between 1 and {} bytes, not {}",
                                                         param, kStopBytesMax, stop.size()));
    stops.push_back(stop);
  };
  if (const std::string* text = value.string()) add(*text);
  if (const json::Array* list = value.array()) {
    if (list->size() > kStopsMax)
      throw RequestError(std::string(param),
                         fmt::format("{} must have at most {} items, not {}", param, kStopsMax, list->size()));
    for (const json::Value& stop : *list) {
      if (!stop.string())
        throw RequestError(std::string(param), fmt::format("{} must be a string or an array of strings", param));
      add(*stop.string());
    }
  }
  return stops;
}

void check_content(const json::Value& content, std::string_view param) {
  if (content.is_null() || content.is_string()) return;
  const json::Array* parts = content.array();
  if (!parts)
    throw RequestError(std::string(param),
                       fmt::format("{} must be a string or an array of parts, not {}", param, content.type_name()));
  for (size_t i = 0; i < parts->size(); ++i) {
    const json::Value& part = (*parts)[i];
    const json::Value* type = part.get("type");
    const std::string name = type && type->string() ? *type->string() : "";
    if (name == "text" || name == "input_text" || name == "output_text") {
      const json::Value* text = part.get("text");
      if (!text || !text->string())
        throw RequestError(std::string(param), fmt::format("{}[{}].text must be a string", param, i));
    } else if (name == "image_url" || name == "input_image" || name == "image") {
      throw RequestError(std::string(param),
                         fmt::format("{}[{}] is an image, and the model reads text only", param, i));
    } else {
      throw RequestError(std::string(param),
                         name.empty() ? fmt::format("{}[{}] has no type", param, i)
                                      : fmt::format("{}[{}] is of type {}, which is not supported", param, i, name));
    }
  }
}

}  // namespace hearth::server
