#include "cli/engine_backend.h"

#include "base/error.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

// What /set can change, in the order it is shown.
struct Setting {
  const char *name, *help;
  std::string (*get)(const decode::GenerateOptions&);
  void (*put)(decode::GenerateOptions&, double);
  bool whole;
};
template <class T>
std::string show(T value) {
  return fmt::format("{}", value);
}
constexpr Setting kSettings[] = {
    {"temperature", "0 takes the likeliest token", [](const auto& o) { return show(o.sampler.temperature); },
     [](auto& o, double v) { o.sampler.temperature = v; }, false},
    {"top-p", "smallest set of tokens with this probability", [](const auto& o) { return show(o.sampler.top_p); },
     [](auto& o, double v) { o.sampler.top_p = v; }, false},
    {"top-k", "only the likeliest tokens; 0: all", [](const auto& o) { return show(o.sampler.top_k); },
     [](auto& o, double v) { o.sampler.top_k = static_cast<int64_t>(v); }, true},
    {"min-p", "share of the likeliest token's probability", [](const auto& o) { return show(o.sampler.min_p); },
     [](auto& o, double v) { o.sampler.min_p = v; }, false},
    {"repetition-penalty", "1: off", [](const auto& o) { return show(o.sampler.repetition_penalty); },
     [](auto& o, double v) { o.sampler.repetition_penalty = v; }, false},
    {"max-tokens", "of an answer", [](const auto& o) { return show(o.max_tokens); },
     [](auto& o, double v) { o.max_tokens = static_cast<int64_t>(v); }, true},
    {"seed", "repeats a draw", [](const auto& o) { return show(o.sampler.seed); },
     [](auto& o, double v) { o.sampler.seed = static_cast<uint64_t>(v); }, true},
};

}  // namespace

EngineBackend::EngineBackend(LoadedModel& loaded, decode::GenerateOptions options, std::vector<std::string> stops)
    : loaded_(loaded),
      options_(std::move(options)),
      stops_(std::move(stops)),
      sequence_(loaded.engine->cache().make()) {}

EngineBackend::~EngineBackend() { loaded_.engine->cache().free(sequence_); }

std::vector<int32_t> EngineBackend::prompt_of(std::span<const ChatMessage> messages) const {
  const ModelText& text = *loaded_.text;
  if (text.has_template()) {
    json::Array list;
    for (const ChatMessage& m : messages) {
      json::Object o;
      o["role"] = m.role;
      o["content"] = m.content;
      list.emplace_back(std::move(o));
    }
    return text.encode_rendered(text.render(json::Value(std::move(list))));
  }
  // A base model: the turns one after the other, as plain text.
  std::string joined;
  for (const ChatMessage& m : messages) joined += m.content;
  return text.encode_text(joined);
}

ChatReply EngineBackend::reply(std::span<const ChatMessage> messages,
                               const std::function<void(std::string_view)>& on_text, const std::atomic<bool>& cancel) {
  decode::GenerateOptions options = options_;
  options.cancel = &cancel;
  const std::vector<int32_t> prompt = prompt_of(messages);
  const decode::Completion c =
      decode::complete(*loaded_.engine, loaded_.text->tokenizer(), sequence_, prompt, options, stops_, on_text);
  const decode::GenerateStats& s = c.generated.stats;
  return {.text = c.text,
          .finish_reason = std::string(name_of(c.generated.finish)),
          .stats = {.prompt_tokens = s.prompt_tokens,
                    .cached_tokens = s.cached_tokens,
                    .generated_tokens = s.generated_tokens,
                    .ttft_ms = s.ttft_ms,
                    .prefill_ms = s.prefill_ms,
                    .prefill_tps = s.prefill_tps(),
                    .decode_ms = s.decode_ms,
                    .decode_tps = s.decode_tps()}};
}

std::vector<ChatSetting> EngineBackend::settings() const {
  std::vector<ChatSetting> list;
  for (const Setting& s : kSettings) list.push_back({s.name, s.get(options_), s.help});
  return list;
}

void EngineBackend::set(const std::string& name, const std::string& value) {
  for (const Setting& s : kSettings) {
    if (name != s.name) continue;
    const std::optional<int64_t> whole = parse_integer(value);
    const std::optional<double> number = s.whole ? std::nullopt : parse_number(value);
    if (s.whole ? !whole || *whole < 0 : !number)
      fail(ErrorKind::invalid_argument, "{} is '{}', expected a {}", name, value,
           s.whole ? "whole number, 0 or more" : "number");
    decode::GenerateOptions changed = options_;
    if (name == "seed") changed.sampler.seed = static_cast<uint64_t>(*whole);
    else s.put(changed, s.whole ? static_cast<double>(*whole) : *number);
    validate(changed.sampler, loaded_.engine->spec().V);
    options_ = std::move(changed);
    return;
  }
  std::string names;
  for (const Setting& s : kSettings) names += (names.empty() ? "" : ", ") + std::string(s.name);
  fail(ErrorKind::invalid_argument, "there is no setting \"{}\"; /set knows {}", name, names);
}

}  // namespace hearth::cli
