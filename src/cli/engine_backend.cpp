#include "cli/engine_backend.h"

#include "base/error.h"
#include "cli/chat.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

// What /set can change, in the order it is shown. Either put or put_whole.
struct Setting {
  const char *name, *help;
  std::string (*get)(const decode::GenerateOptions&);
  void (*put)(decode::GenerateOptions&, double);
  void (*put_whole)(decode::GenerateOptions&, int64_t);
};
template <class T>
std::string show(T value) {
  return fmt::format("{}", value);
}
constexpr Setting kSettings[] = {
    {"temperature", "0 takes the likeliest token", [](const auto& o) { return show(o.sampler.temperature); },
     [](auto& o, double v) { o.sampler.temperature = v; }, nullptr},
    {"top-p", "smallest set of tokens with this probability", [](const auto& o) { return show(o.sampler.top_p); },
     [](auto& o, double v) { o.sampler.top_p = v; }, nullptr},
    {"top-k", "only the likeliest tokens; 0: all", [](const auto& o) { return show(o.sampler.top_k); }, nullptr,
     [](auto& o, int64_t v) { o.sampler.top_k = v; }},
    {"min-p", "share of the likeliest token's probability", [](const auto& o) { return show(o.sampler.min_p); },
     [](auto& o, double v) { o.sampler.min_p = v; }, nullptr},
    {"repetition-penalty", "1: off", [](const auto& o) { return show(o.sampler.repetition_penalty); },
     [](auto& o, double v) { o.sampler.repetition_penalty = v; }, nullptr},
    {"max-tokens", "of an answer", [](const auto& o) { return show(o.max_tokens); }, nullptr,
     [](auto& o, int64_t v) { o.max_tokens = v; }},
    {"seed", "repeats a draw", [](const auto& o) { return show(o.sampler.seed); }, nullptr,
     [](auto& o, int64_t v) { o.sampler.seed = static_cast<uint64_t>(v); }},
};

}  // namespace

EngineBackend::EngineBackend(LoadedModel& loaded, decode::GenerateOptions options, std::vector<std::string> stops)
    : loaded_(loaded),
      options_(std::move(options)),
      stops_(std::move(stops)),
      sequence_(loaded.engine->cache().make()) {}

EngineBackend::~EngineBackend() { loaded_.engine->cache().free(sequence_); }

std::vector<int32_t> EngineBackend::prompt_of(std::span<const ChatMessage> messages) const {
  const model::ModelText& text = *loaded_.text;
  if (text.has_template()) return text.encode_rendered(text.render(json::Value(messages_json(messages))));
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
  return {
      .text = c.text,
      .finish_reason = std::string(name_of(c.generated.finish)),
      .context_full = c.generated.finish == decode::FinishReason::length && c.generated.max_tokens < options.max_tokens,
      .stats = c.generated.stats};
}

std::vector<ChatSetting> EngineBackend::settings() const {
  std::vector<ChatSetting> list;
  for (const Setting& s : kSettings) list.push_back({s.name, s.get(options_), s.help});
  return list;
}

void EngineBackend::set(const std::string& name, const std::string& value) {
  for (const Setting& s : kSettings) {
    if (name != s.name) continue;
    decode::GenerateOptions changed = options_;
    if (s.put_whole) {
      const std::optional<int64_t> whole = parse_integer(value);
      if (!whole || *whole < 0)
        fail(ErrorKind::invalid_argument, "{} is '{}', expected a whole number, 0 or more", name, value);
      s.put_whole(changed, *whole);
    } else {
      const std::optional<double> number = parse_number(value);
      if (!number) fail(ErrorKind::invalid_argument, "{} is '{}', expected a number", name, value);
      s.put(changed, *number);
    }
    validate(changed.sampler, loaded_.engine->spec().V);
    options_ = std::move(changed);
    return;
  }
  std::string names;
  for (const Setting& s : kSettings) names += (names.empty() ? "" : ", ") + std::string(s.name);
  fail(ErrorKind::invalid_argument, "there is no setting \"{}\"; /set knows {}", name, names);
}

}  // namespace hearth::cli
