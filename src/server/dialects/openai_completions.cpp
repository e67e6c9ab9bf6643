#include "server/dialects/openai_completions.h"

#include "net/sse.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/openai_stream.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"

namespace hearth::server::openai {
namespace {

constexpr Field kFields[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default model", 0, 1024},
    {"prompt", FieldType::string, "the text to continue", 0, 32 << 20, {}, true},
    {"stream", FieldType::boolean, "server-sent events"},
    {"stream_options", FieldType::object, "include_usage: a last chunk with the usage"},
    {"max_tokens", FieldType::integer, "tokens of the answer at most [512]", 0, 1e9},
    {"stop", FieldType::string_or_array, "up to 16 strings that end the answer"},
    {"n", FieldType::integer, "answers to one prompt", 1, 8},
    {"logprobs", FieldType::integer, "log-probabilities, with so many of the likeliest tokens beside each", 0, 20},
    {"response_format", FieldType::object, "text, json_object, json_schema"},
    {"guided_grammar", FieldType::string, "an EBNF grammar that the answer follows", 0, most::kGrammarBytes},
    {"guided_regex", FieldType::string, "a regular expression that the whole answer matches", 0, most::kGrammarBytes},
    {"guided_choice", FieldType::array, "strings one of which is the answer", 1, 1024},
    {"guided_json", FieldType::string_or_object, "a JSON schema"},
    {"grammar", FieldType::string, "llama.cpp's name of guided_grammar", 0, most::kGrammarBytes},
    {"json_schema", FieldType::string_or_object, "llama.cpp's name of guided_json"},
    {"grammar_lazy", FieldType::boolean, "not supported"},
    {"structured_outputs", FieldType::object, "the same fields in one object"},
    {"best_of", FieldType::integer, "not supported beyond n", 0, 1e6},
    {"echo", FieldType::boolean, "not supported"},
    {"suffix", FieldType::string, "not supported"},
};

}  // namespace

std::span<const Field> completion_fields() { return kFields; }

CompletionRequest parse_completion(const json::Object& body) {
  if (const json::Value* prompt = present(body, "prompt"); prompt && prompt->array())
    throw RequestError("prompt", "prompt must be one string; lists and token arrays are not supported");
  check_fields(body, kFields);
  CompletionRequest request;
  Generation& g = request.generation;
  g.kind = Generation::Kind::raw;
  read_sampling(body, g);
  const auto on = [&](std::string_view key) { return present(body, key) && present(body, key)->as_bool(key); };
  if (const json::Value* model = present(body, "model")) request.model = *model->string();
  g.prompt = *body.find("prompt")->string();
  request.stream = on("stream");
  if (const json::Value* options = present(body, "stream_options")) {
    const json::Value* usage = options->get("include_usage");
    if (usage && !usage->is_bool())
      throw RequestError("stream_options", "stream_options.include_usage must be of type bool");
    request.include_usage = usage && usage->as_bool("include_usage");
  }
  if (const json::Value* tokens = present(body, "max_tokens")) g.max_tokens = tokens->as_int("max_tokens");
  if (const json::Value* stop = present(body, "stop")) g.stops = read_stops(*stop, "stop");
  if (const json::Value* n = present(body, "n")) g.n = n->as_int("n");
  if (const json::Value* top = present(body, "logprobs")) g.top_logprobs = top->as_int("logprobs");
  if (const json::Value* best = present(body, "best_of"); best && best->as_int("best_of") > g.n)
    throw RequestError("best_of", "best_of beyond n is not supported");
  if (on("echo")) throw RequestError("echo", "echo is not supported");
  if (const json::Value* suffix = present(body, "suffix"); suffix && !suffix->string()->empty())
    throw RequestError("suffix", "suffix is not supported");
  read_format(body, g);
  request.keep_alive = read_keep_alive(body);
  return request;
}

namespace {

std::string finish_reason(const std::string& reason) { return reason == "length" ? "length" : "stop"; }

// {tokens, token_logprobs, top_logprobs, text_offset}, the shape of the older interface.
json::Value old_logprobs(const json::Value& entries, size_t& offset) {
  const json::Array* list = entries.array();
  if (!list || list->size() == 0) return nullptr;
  json::Array tokens, values, tops, offsets;
  for (const json::Value& entry : *list) {
    tokens.push_back(*entry.get("token"));
    values.push_back(*entry.get("logprob"));
    json::Object top;
    for (const json::Value& t : *entry.get("top_logprobs")->array()) top[*t.get("token")->string()] = *t.get("logprob");
    tops.push_back(std::move(top));
    offsets.emplace_back(static_cast<int64_t>(offset));
    offset += entry.get("bytes")->array()->size();
  }
  json::Object o;
  o["tokens"] = std::move(tokens);
  o["token_logprobs"] = std::move(values);
  o["top_logprobs"] = std::move(tops);
  o["text_offset"] = std::move(offsets);
  return o;
}

class CompletionWriter final : public StreamWriter {
 public:
  CompletionWriter(bool include_usage, int64_t n)
      : StreamWriter(include_usage, n, random_id("cmpl-"), "text_completion"), offsets_(static_cast<size_t>(n)) {}

  std::string begin(const AnswerHead& head, const Usage&) override {
    head_ = head;
    return "";
  }

  std::string event(const Event& e) override {
    if (e.kind == Event::Kind::finish) {
      ended_[static_cast<size_t>(e.answer)].add(e);
      ++finished_;
      return chunk(e.answer, "", nullptr, finish_reason(e.reason), finished_ == ended_.size() && !include_usage_);
    }
    if (e.kind != Event::Kind::text && e.kind != Event::Kind::reasoning) return "";
    return chunk(e.answer, e.text, old_logprobs(e.logprobs, offsets_[static_cast<size_t>(e.answer)]), nullptr, false);
  }

  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    head_ = head;
    json::Object o = base();
    json::Array choices;
    for (size_t i = 0; i < answers.size(); ++i) {
      size_t offset = 0;
      choices.push_back(choice(static_cast<int64_t>(i), answers[i].text, old_logprobs(answers[i].logprobs, offset),
                               finish_reason(answers[i].reason)));
    }
    o["choices"] = std::move(choices);
    put_usage(o, answers);
    return o;
  }

 private:
  static json::Object choice(int64_t index, const std::string& text, json::Value logprobs, json::Value finish) {
    json::Object o;
    o["index"] = index;
    o["text"] = text;
    o["logprobs"] = std::move(logprobs);
    o["finish_reason"] = std::move(finish);
    return o;
  }
  std::string chunk(int64_t index, const std::string& text, json::Value logprobs, json::Value finish,
                    bool usage) const {
    json::Object o = base();
    json::Array choices;
    choices.push_back(choice(index, text, std::move(logprobs), std::move(finish)));
    o["choices"] = std::move(choices);
    if (usage) put_usage(o, ended_);
    else if (include_usage_) o["usage"] = nullptr;
    return net::sse_event("", json::dump(o));
  }

  std::vector<size_t> offsets_;
};

}  // namespace

std::unique_ptr<AnswerWriter> completion_writer(const CompletionRequest& request) {
  return std::make_unique<CompletionWriter>(request.include_usage, request.generation.n);
}

}  // namespace hearth::server::openai
