#include "server/worker/text_thread.h"

#include <algorithm>
#include <chrono>

#include "server/worker/guarded.h"
#include "server/worker/signal_json.h"
#include "server/worker/text_calls.h"

namespace hearth::server {
namespace {

// Tokens that come faster than a screen shows them go together: each of the threads that hand them on takes the CPU
// from the engine (ADR 0012). The first one of an answer and its end go at once.
constexpr std::chrono::milliseconds kPace{16};
constexpr std::chrono::milliseconds kFastPace{40};  // where tokens follow each other within kFastToken
constexpr std::chrono::milliseconds kFastToken{4};

// Of one event, so that its frame stays far below kFrameBytesMax.
constexpr size_t kEventBytes = size_t{1} << 20;
constexpr size_t kEventLogprobs = 1024;  // tokens; with twenty others beside each some 2 KiB a token

// Whether `next` can stand in `last`, as one event for both.
bool continues(const Event& last, const Event& next) {
  const json::Array* logprobs = last.logprobs.array();
  if (last.text.size() >= kEventBytes || (logprobs && logprobs->size() >= kEventLogprobs)) return false;
  const bool grows =
      next.kind == Event::Kind::text || next.kind == Event::Kind::reasoning || next.kind == Event::Kind::tool_args;
  return grows && last.kind == next.kind && last.index == next.index;
}

void grow(Event& last, Event& next) {
  last.text += next.text;
  last.tokens += next.tokens;
  if (json::Array* more = next.logprobs.array()) {
    if (last.logprobs.is_null()) last.logprobs = json::Array{};
    for (json::Value& entry : *more) last.logprobs.array()->push_back(std::move(entry));
  }
}

Event failure(const Error& error) {
  Event event{.kind = Event::Kind::error};
  event.text = error.what();
  event.reason = name_of(error.kind());
  return event;
}

}  // namespace

TextThread::TextThread(const text::Tokenizer& tokenizer, Hooks hooks)
    : tokenizer_(tokenizer), hooks_(std::move(hooks)), thread_([this] { run(); }) {}

TextThread::~TextThread() {
  outputs_.close();
  thread_.join();
}

void TextThread::run() {
  using Clock = std::chrono::steady_clock;
  std::vector<EngineOutput> outputs;
  std::chrono::milliseconds pace = kPace;
  Clock::time_point due = Clock::now();  // of what need not go at once
  for (;;) {
    const bool early = Clock::now() < due;
    if (!(early ? outputs_.take_all_until(outputs, due) : outputs_.take_all(outputs))) break;
    bool at_once = false;
    for (EngineOutput& output : outputs)
      guarded([&] { at_once |= handle(output); },
              [&](const Error& error) {
                give_up(output.live, output.answer, error);
                at_once = true;
              });
    outputs.clear();  // what they share may be the last of a request
    if (const auto now = Clock::now(); at_once || now >= due) {
      const bool any = !kept_.empty();
      pace = send_kept() > pace / kFastToken ? kFastPace : kPace;
      if (any) due = now + pace;
    }
  }
  send_kept();
}

void TextThread::keep(const LiveRequestPtr& live, int64_t answer, std::vector<Event>& events) {
  std::vector<Event>& kept = live->answers[static_cast<size_t>(answer)].kept;
  if (kept.empty() && !events.empty()) kept_.emplace_back(live, answer);
  for (Event& event : events) {
    if (!kept.empty() && continues(kept.back(), event)) grow(kept.back(), event);
    else kept.push_back(std::move(event));
  }
  events.clear();
}

// What is kept goes, but for answers that are wanted as a whole and have not ended. Returns the most tokens that one
// streamed answer got.
int64_t TextThread::send_kept() {
  std::string frames;
  int64_t most = 0;
  std::erase_if(kept_, [&](const auto& one) {
    const auto& [live, answer] = one;
    LiveRequest::Answer& told = live->answers[static_cast<size_t>(answer)];
    if (!live->generation.stream && !told.ended) return false;
    int64_t tokens = 0;
    for (const Event& event : told.kept) tokens += event.tokens;
    if (live->generation.stream) most = std::max(most, tokens);
    append_kept(live, answer, frames);
    told.kept.clear();
    return true;
  });
  surely([&] { hooks_.send(frames); });
  return most;
}

// What cannot be written ends its answer, and no other one.
void TextThread::append_kept(const LiveRequestPtr& live, int64_t number, std::string& frames) {
  LiveRequest::Answer& answer = live->answers[static_cast<size_t>(number)];
  const size_t before = frames.size();
  guarded(
      [&] {
        for (Event& event : answer.kept) {
          event.id = live->id;
          event.answer = number;
          append_frame(frames, to_frame(event));
        }
      },
      [&](const Error& error) {
        frames.resize(before);
        Event event = failure(error);
        event.id = live->id;
        event.answer = number;
        append_frame(frames, to_frame(event));
        if (answer.ended) return;
        hooks_.stop(live, number);
        end(live, answer);
      });
}

// What ends an answer that the engine is done with.
Event TextThread::finish_event(LiveRequest& live, const LiveRequest::Answer& answer, const EngineOutput& output) const {
  const AnswerText* text = answer.text.get();
  Event event{.kind = Event::Kind::finish};
  const bool stopped = text && text->stop();
  // Drawn tokens behind a stop or behind the only call that is wanted make the engine's reason "cancelled".
  event.reason = stopped || (answer.stopped && !live.cancelled) ? "stop" : std::string(name_of(output.reason));
  if (text && text->calls() > 0 && event.reason == "stop") event.reason = "tool_calls";
  if (stopped) event.stop = *text->stop();
  event.usage = {.prompt = live.prompt_tokens,
                 .cached = output.stats.cached_tokens,
                 .completion = text ? text->tokens() : 0,
                 .reasoning = text ? text->reasoning_tokens() : 0,
                 .max_tokens = answer.max_tokens,
                 .queue_ms = output.stats.queue_ms,
                 .prefill_ms = output.stats.prefill_ms,
                 .decode_ms = output.stats.decode_ms};
  if (live.logits.empty()) return event;
  try {
    event.signal = signal_json(live.logits, tokenizer_);
    return event;
  } catch (const Error& error) {
    return error_event(live.id, hooks_.blame(live, error.what()));
  }
}

// Its words could not be made: the answer ends with the error, and the engine is told. Goes on where it did not end.
void TextThread::give_up(const LiveRequestPtr& live, int64_t number, const Error& error) {
  LiveRequest::Answer& answer = live->answers[static_cast<size_t>(number)];
  if (answer.ended) return;
  if (!answer.given_up) {
    std::vector<Event> events;
    events.push_back(failure(error));
    keep(live, number, events);
    answer.given_up = true;
  }
  hooks_.stop(live, number);
  end(live, answer);
}

void TextThread::end(const LiveRequestPtr& live, LiveRequest::Answer& answer) {
  answer.ended = true;
  if (--live->open == 0) hooks_.ended(live);
}

// True: it is to be sent at once.
bool TextThread::handle(EngineOutput& output) {
  using Kind = EngineOutput::Kind;
  const LiveRequestPtr& live = output.live;
  LiveRequest::Answer& answer = live->answers[static_cast<size_t>(output.answer)];
  if (answer.ended) return false;  // given up
  AnswerText* text = answer.text.get();
  std::vector<Event> events;
  bool at_once = true;
  switch (output.kind) {
    case Kind::admitted: {
      Event event{.kind = Event::Kind::admitted};
      event.usage = {.prompt = live->prompt_tokens, .cached = output.cached, .max_tokens = answer.max_tokens};
      if (live->generation.stream) {
        events.push_back(std::move(event));
        break;
      }
      // Of an answer that is wanted as a whole, this alone is not kept: the front counts what runs and what waits.
      event.id = live->id;
      event.answer = output.answer;
      std::string frame;
      append_frame(frame, to_frame(event));
      hooks_.send(frame);
      break;
    }
    case Kind::logits: live->logits = std::move(output.logits); break;
    case Kind::token:
      at_once = answer.told == 0 && live->generation.stream;
      // What comes behind a stop string was drawn before the engine heard of it.
      if (!answer.stopped && !text->push({output.token.id, output.token.logprob, output.token.top}, events)) {
        answer.stopped = true;
        hooks_.stop(live, output.answer);
      }
      break;
    case Kind::done: {
      const bool limit = output.reason == decode::FinishReason::length;
      if (text) text->finish(limit ? AnswerText::Cut::by_limit : AnswerText::Cut::no, events);
      events.push_back(finish_event(*live, answer, output));
      break;
    }
    case Kind::failed: events.push_back(failure(*output.error)); break;
  }
  if (text && !events.empty()) events.front().tokens = text->tokens() - std::exchange(answer.told, text->tokens());
  keep(live, output.answer, events);
  if (output.kind != Kind::done && output.kind != Kind::failed) return at_once;
  end(live, answer);
  return true;
}

}  // namespace hearth::server
