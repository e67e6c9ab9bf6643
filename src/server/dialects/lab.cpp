#include "server/dialects/lab.h"

#include <utility>

#include "base/random.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"
#include "server/http/problem.h"

namespace hearth::server::lab {
namespace {

constexpr int64_t kSamples = 3, kTokens = 80, kTokensMax = 256;
constexpr int kSeedBits = 53;  // a number of every JSON reader

constexpr Field kPrompt[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default model", 0, 1024},
    {"prompt", FieldType::string, "a text, taken as it is; or messages", 0, 32 << 20},
    {"messages", FieldType::array, "a conversation, rendered by the model's template", 1, most::kMessages},
    {"adapter", FieldType::string, "an adapter, a stack a+b, or none", 0, 1024},
    {"reasoning_effort", FieldType::string, "none turns thinking off", -kUnbounded, kUnbounded,
     "none|minimal|low|medium|high|xhigh"},
    {"chat_template_kwargs", FieldType::object, "further variables of the chat template"},
    {"keep_alive", FieldType::string_or_number, "how long the model stays loaded: seconds or 10m; -1: for good"},
};
constexpr Field kGenerate[] = {
    {"points",
     FieldType::array,
     "the transfer curve that draws: {x_pct, y_pct}, in percent of probability",
     2,
     64,
     {},
     true},
    {"n", FieldType::integer, "samples [3]", 1, 8},
    {"max_tokens", FieldType::integer, "tokens of a sample at most [80]", 1, kTokensMax},
    {"seed", FieldType::integer, "the same seed draws the same samples", -9.2e18, 9.2e18},
};

LabRequest parse_prompt(const json::Object& body) {
  check_fields(body, kPrompt);
  LabRequest request;
  Generation& g = request.generation;
  json::Object rest;
  for (const char* key : {"adapter", "reasoning_effort", "chat_template_kwargs"})
    if (const json::Value* value = present(body, key)) rest[key] = *value;
  read_sampling(rest, g);
  const json::Value *prompt = present(body, "prompt"), *messages = present(body, "messages");
  if ((prompt != nullptr) == (messages != nullptr))
    throw RequestError("prompt", "the body takes prompt or messages, one of them");
  if (prompt) {
    g.kind = Generation::Kind::raw;
    g.prompt = *prompt->string();
  } else {
    openai::check_messages(*messages);
    g.messages = *messages;
  }
  if (const json::Value* model = present(body, "model")) request.model = *model->string();
  request.keep_alive = openai::read_keep_alive(body);
  return request;
}

// A document alone: nothing of it streams.
class LabWriter : public AnswerWriter {
 public:
  std::string begin(const AnswerHead&, const Usage&) override { return ""; }
  std::string event(const Event&) override { return ""; }
  std::string end() override { return ""; }
  std::string failure(const Problem&, std::string_view) override { return ""; }
  std::string ping() override { return ""; }

 protected:
  static void put_usage(json::Object& o, const std::vector<Collected>& answers) {
    const Usage usage = total(answers);
    o["usage"] = openai::usage_json(usage);
    o["timings"] = openai::timings_json(usage);
  }
};

class SignalWriter final : public LabWriter {
 public:
  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    json::Object o;
    o["object"] = "signal";
    o["model"] = head.model;
    for (const char* key : {"bins", "entropy", "top"})
      if (const json::Value* value = answers[0].signal.get(key)) o[key] = *value;
    put_usage(o, answers);
    return o;
  }
};

class SamplesWriter final : public LabWriter {
 public:
  explicit SamplesWriter(json::Value seed) : seed_(std::move(seed)) {}

  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    json::Object o;
    o["object"] = "samples";
    o["model"] = head.model;
    o["seed"] = seed_;
    json::Array samples;
    for (size_t i = 0; i < answers.size(); ++i) {
      json::Object one;
      one["index"] = static_cast<int64_t>(i);
      one["text"] = answers[i].text;
      if (!answers[i].reasoning.empty()) one["reasoning"] = answers[i].reasoning;
      one["finish_reason"] = answers[i].reason == "length" ? "length" : "stop";
      samples.emplace_back(std::move(one));
    }
    o["samples"] = std::move(samples);
    put_usage(o, answers);
    return o;
  }

 private:
  json::Value seed_;
};

}  // namespace

std::span<const Field> prompt_fields() { return kPrompt; }
std::span<const Field> generate_fields() { return kGenerate; }

LabRequest parse_signal(const json::Object& body) {
  LabRequest request = parse_prompt(body);
  request.generation.signal = true;
  return request;
}

LabRequest parse_generate(const json::Object& body) {
  check_fields(body, kGenerate);
  LabRequest request = parse_prompt(body);
  Generation& g = request.generation;
  json::Object curve, sampling;
  curve["points"] = *body.find("points");
  check_curve(curve, "points");
  sampling["curve"] = std::move(curve);
  const json::Value* seed = present(body, "seed");
  sampling["seed"] = seed ? seed->as_int("seed") : static_cast<int64_t>(entropy64() >> (64 - kSeedBits));
  read_sampling(sampling, g);
  const json::Value *n = present(body, "n"), *tokens = present(body, "max_tokens");
  g.n = n ? n->as_int("n") : kSamples;
  g.max_tokens = tokens ? tokens->as_int("max_tokens") : kTokens;
  return request;
}

std::unique_ptr<AnswerWriter> signal_writer() { return std::make_unique<SignalWriter>(); }
std::unique_ptr<AnswerWriter> samples_writer(const LabRequest& request) {
  return std::make_unique<SamplesWriter>(*request.generation.sampling.find("seed"));
}

}  // namespace hearth::server::lab
