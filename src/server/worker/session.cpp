#include "server/worker/session.h"

#include <chrono>
#include <utility>

#include "base/limit_error.h"
#include "base/log.h"
#include "decode/complete.h"
#include "server/worker/guarded.h"
#include "server/worker/reasoning_constraint.h"
#include "server/worker/text_calls.h"

namespace hearth::server {
namespace {

// For prefixes on their way to the disk when the session ends: the front waits five seconds for the process.
constexpr auto kUnsaidPause = std::chrono::milliseconds(20);
constexpr auto kFlush = std::chrono::seconds(4);

PromptModel prompt_model(const WorkerModel& model) {
  const text::Tokenizer& tokenizer = model.text->tokenizer();
  PromptModel p{.text = *model.text,
                .name = model.name,
                .context = model.engine->context(),
                .V = model.engine->spec().V,
                .end_ids = decode::end_ids(model.engine->spec(), tokenizer),
                .newline_ids = {},
                .defaults = model.defaults,
                .limits = model.limits};
  find_markup(p, model.engine->model().templates(), model.tool_dialect);
  if (const auto newline = tokenizer.encode("\n", {.parse_special = false, .add_special = false}); newline.size() == 1)
    p.newline_ids = newline;
  return p;
}

}  // namespace

Session::Session(WorkerModel model, std::function<void(std::string_view)> send)
    : model_(std::move(model)),
      prompt_model_(prompt_model(model_)),
      rows_(static_cast<size_t>(model_.engine->options().sequences_max)),
      send_(std::move(send)),
      adapters_(*model_.engine, model_.name, model_.adapter_bytes),
      text_(
          model_.text->tokenizer(),
          {.send = [this](std::string_view frames) { this->send(frames); },
           .stop = [this](const LiveRequestPtr& live, int64_t answer) { stop_answer(live, answer); },
           .ended = [this](const LiveRequestPtr& live) { ended(live); },
           .blame = [this](const LiveRequest& live,
                           std::string_view what) { return decode::no_numbers(*model_.engine, live.adapter, what); }}) {
  prompt_thread_ = std::thread([this] { run_prompts(); });
  engine_thread_ = std::thread([this] { run_engine(); });
  adapter_thread_ = std::thread([this] { run_adapters(); });
}

Session::~Session() {
  adapter_work_.close();
  adapter_thread_.join();
  prompts_.close();
  prompt_thread_.join();
  commands_.close();
  engine_thread_.join();
}

void Session::send(std::string_view frames) {
  if (frames.empty()) return;
  const std::lock_guard lock(sending_);
  if (broken_) return;
  try {
    send_(frames);
  } catch (const Error& error) {
    broken_ = true;  // the receiving thread notices the same and ends the worker
    log::warn("worker", "{}", error.what());
  }
}

void Session::send_error(uint64_t id, const Error& error, std::string code) {
  Event event = error_event(id, error);
  if (!code.empty()) event.code = std::move(code);
  std::string frames;
  append_frame(frames, to_frame(event));
  send(frames);
}

// --- receiving thread ---

void Session::submit(json::Value body) {
  auto live = std::make_shared<LiveRequest>();
  live->generation = generation_of(body);
  live->id = live->generation.id;
  live->open = live->generation.n;
  {
    std::unique_lock lock(mutex_);
    const bool full = live_.size() >= model_.limits.size_of(LimitId::queue) + rows_;
    if (draining_ || full || !live_.emplace(live->id, live).second) {
      lock.unlock();
      if (draining_) return send_error(live->id, Error(ErrorKind::busy, "the server is shutting down"));
      return send_error(live->id, LimitError(std::string(row_of(LimitId::queue).name),
                                             "too many requests wait for this model", ErrorKind::busy));
    }
  }
  prompts_.push([this, live] { prepare(live); });
}

void Session::cancel(uint64_t id) {
  LiveRequestPtr live;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    live = found->second;
  }
  live->cancelled = true;
  commands_.push([this, live](decode::Scheduler& scheduler) {
    for (int64_t answer = 0; answer < live->generation.n; ++answer)
      if (const auto row = running_.find({live->id, answer}); row != running_.end()) scheduler.cancel(row->second);
  });
}

void Session::hold(uint64_t id, bool held) {
  commands_.push([this, id, held](decode::Scheduler& scheduler) {
    for (auto row = running_.lower_bound({id, 0}); row != running_.end() && row->first.id == id; ++row)
      held ? scheduler.hold(row->second) : scheduler.release(row->second);
  });
}

void Session::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  all_ended_.wait(lock, [&] { return live_.empty(); });
}

void Session::ended(const LiveRequestPtr& live) {
  const std::lock_guard lock(mutex_);
  live_.erase(live->id);
  if (live_.empty()) all_ended_.notify_all();
}

void Session::reply(uint64_t id, json::Object body) {
  body["id"] = id;
  std::string frames;
  append_frame(frames, {FrameKind::reply, std::move(body)});
  send(frames);
}

void Session::call(FrameKind kind, json::Value body) {
  const auto id = static_cast<uint64_t>(body.get("id") ? body.get("id")->as_int("id") : 0);
  if (kind == FrameKind::stats) {
    commands_.push(
        [this, id, room = Unsaid::room([this, id](const Error& error) { send_error(id, error); })](
            decode::Scheduler& scheduler) mutable { unsaid_.guard(room, [&] { reply(id, figures(scheduler)); }); });
    return;
  }
  prompts_.push([this, kind, id, body = std::move(body)] {
    guarded([&] { reply(id, answer_call(kind, body)); }, [&](const Error& error) { send_error(id, error); });
  });
}

// --- prompt thread ---

void Session::run_prompts() {
  std::vector<std::function<void()>> work;
  while (prompts_.take_all(work))
    for (const std::function<void()>& item : work) item();
}

json::Object Session::answer_call(FrameKind kind, const json::Value& body) {
  if (kind == FrameKind::embed) fail(ErrorKind::invalid_argument, "{} is no embedding model", model_.name);
  return prompt_call(kind, body, prompt_model_);
}

void Session::prepare(const LiveRequestPtr& live) {
  guarded(
      [&] {
        std::vector<decode::Request> requests = requests_of(*live);
        commands_.push([this, live, requests = std::move(requests), no_adapter = room_for_request(live),
                        no_answers = room_for_answers(live)](decode::Scheduler& scheduler) mutable {
          start(scheduler, live, std::move(requests), no_adapter, no_answers);
        });
      },
      [&](const Error& error) {
        send_error(live->id, error);
        ended(live);
      });
}

// What the engine is asked for, and what turns its answers into words; nothing for a request that was cancelled.
std::vector<decode::Request> Session::requests_of(LiveRequest& live) {
  const Generation& g = live.generation;
  std::vector<decode::Request> requests;
  live.answers.resize(static_cast<size_t>(g.n));
  if (live.cancelled) return requests;
  const Prompt prompt = make_prompt(g, prompt_model_);
  live.prompt_tokens = static_cast<int64_t>(prompt.ids.size());
  if (live.prompt_tokens > prompt_model_.context) throw PromptTooLong(live.prompt_tokens, prompt_model_.context);
  if (!grammars_ && (!g.format.is_null() || !prompt.tools.empty()))
    grammars_ = std::make_unique<AnswerGrammars>(prompt_model_);
  for (int64_t answer = 0; answer < g.n; ++answer) {
    AnswerGrammars::Made held = grammars_ ? grammars_->make(g, prompt) : AnswerGrammars::Made();
    const Calls calls = held.shapes_calls ? Calls::streamed : Calls::whole;
    requests.push_back(make_request(g, prompt_model_, prompt, answer));
    requests.back().constraint = while_thinking(g, prompt_model_, prompt, calls, std::move(held));
    LiveRequest::Answer& told = live.answers[static_cast<size_t>(answer)];
    told.max_tokens = requests.back().max_tokens;
    told.text = std::make_unique<AnswerText>(prompt_model_, prompt, g, calls);
  }
  return requests;
}

// Where it ends as a whole.
Unsaid::Room Session::room_for_request(const LiveRequestPtr& live) {
  return Unsaid::room([this, live](const Error& error) {
    send_adapter_error(live->id, error);
    ended(live);
  });
}

// Where each of its answers does, on the text thread.
Unsaid::Room Session::room_for_answers(const LiveRequestPtr& live) {
  return Unsaid::room([this, live](const Error& error) {
    const auto shared = std::make_shared<const Error>(error);
    for (int64_t answer = 0; answer < live->generation.n; ++answer)
      text_.push({.kind = EngineOutput::Kind::failed, .live = live, .answer = answer, .error = shared});
  });
}

// --- engine thread ---

json::Object Session::figures(const decode::Scheduler& scheduler) const {
  const decode::Scheduler::Counts counts = scheduler.counts();
  json::Object o;
  o["active"] = counts.active;
  o["waiting"] = counts.waiting;
  o["parked"] = counts.parked;
  o["submitted"] = counts.submitted;
  o["cancelled"] = counts.cancelled;
  o["prefix_bytes"] = scheduler.prefixes().bytes();
  o["prefix_entries"] = scheduler.prefixes().entries();
  int64_t total = 0, free = 0;
  for (size_t g = 0; g < model_.engine->page_bytes().size(); ++g) {
    total += model_.engine->cache().pages_total(g);
    free += model_.engine->cache().pages_free(g);
  }
  o["pages_total"] = total;
  o["pages_free"] = free;
  o["kv_bytes"] = model_.engine->kv_bytes();
  json::Object adapters;
  for (const decode::AdapterTable::Use& use : adapters_.uses()) adapters[use.id] = use.requests;
  o["adapters"] = std::move(adapters);
  if (disk_) {
    const decode::PrefixDisk::Counts kept = disk_->counts();
    o["disk_entries"] = kept.entries;
    o["disk_bytes"] = kept.bytes;
    o["disk_restores"] = kept.restores;
    o["disk_spills"] = kept.spills;
  }
  return o;
}

void Session::run_engine() {
  // A folder that cannot be used costs the disk tier, not the server.
  std::unique_ptr<decode::PrefixDisk> disk;
  if (model_.disk) try {
      disk = std::make_unique<decode::PrefixDisk>(*model_.engine, *model_.disk);
    } catch (const Error& error) {
      log::error("worker", "no prefixes on disk: {}", error.what());
    }
  model_.scheduler.disk = disk_ = disk.get();
  decode::Scheduler scheduler(*model_.engine, model_.scheduler);
  std::vector<Command> commands;
  for (bool busy = false;;) {
    model_.engine->set_busy(busy);
    if (busy) commands_.take_ready(commands);
    else if (!unsaid_.empty()) commands_.take_within(kUnsaidPause, commands);
    else if (const auto pause = scheduler.demote()) commands_.take_within(*pause, commands);
    else if (!commands_.take_all(commands)) break;
    model_.engine->set_busy(true);
    for (Command& command : commands) command(scheduler);
    unsaid_.again();
    if (commands_.closed()) break;
    busy = scheduler.step();
    adapters_.settle();
  }
  disk_ = nullptr;
  if (disk && !disk->flush_within(kFlush)) log::warn("worker", "prefixes that were not written in time are given up");
}

void Session::start(decode::Scheduler& scheduler, const LiveRequestPtr& live, std::vector<decode::Request> requests,
                    Unsaid::Room& no_adapter, Unsaid::Room& no_answers) {
  const int64_t n = live->generation.n;
  if (live->cancelled) {
    for (int64_t answer = 0; answer < n; ++answer)
      text_.push({.kind = EngineOutput::Kind::done,
                  .live = live,
                  .answer = answer,
                  .reason = decode::FinishReason::cancelled});
    return;
  }
  decode::AdapterChoice adapter;
  bool chosen = false;
  unsaid_.guard(no_adapter, [&] {
    adapter = choose_adapter(live->generation.adapter);
    live->adapter = model_.engine->adapter_name(adapter.slot);
    chosen = true;
  });
  if (!chosen) return;
  unsaid_.guard(no_answers, [&] {
    std::vector<decode::Submission> answers;
    for (int64_t answer = 0; answer < n; ++answer) {
      decode::Request& request = requests[static_cast<size_t>(answer)];
      request.adapter = adapter.slot;
      request.space = request.owner + "\n" + adapter.space;
      answers.push_back({std::move(request), events_of(live, answer)});
    }
    const std::vector<decode::RequestId> ids = scheduler.submit_together(std::move(answers));
    for (int64_t answer = 0; answer < n; ++answer) running_[{live->id, answer}] = ids[static_cast<size_t>(answer)];
  });
}

decode::Events Session::events_of(const LiveRequestPtr& live, int64_t answer) {
  decode::Events events;
  events.admitted = [this, live, answer](int64_t, int64_t cached) {
    text_.push({.kind = EngineOutput::Kind::admitted, .live = live, .answer = answer, .cached = cached});
  };
  if (live->generation.signal)
    events.prompt_logits = [this, live, answer](std::span<const float> logits) {
      text_.push({.kind = EngineOutput::Kind::logits,
                  .live = live,
                  .answer = answer,
                  .logits = {logits.begin(), logits.end()}});
    };
  // What may end the answer is looked at before the engine has drawn far beyond it.
  const bool may_stop = !live->generation.stops.empty() || !live->generation.parallel_tool_calls;
  events.token = [this, live, answer, may_stop,
                  first = live->generation.stream](const decode::TokenEvent& token) mutable {
    const bool at_once = std::exchange(first, false) || may_stop;
    text_.push({.kind = EngineOutput::Kind::token,
                .live = live,
                .answer = answer,
                .token = {token.id, token.logprob, {token.top.begin(), token.top.end()}}},
               at_once ? Wake::now : Wake::later);
    return true;
  };
  events.done = [this, live, answer](decode::FinishReason reason, const decode::GenerateStats& stats) {
    running_.erase({live->id, answer});
    text_.push({.kind = EngineOutput::Kind::done, .live = live, .answer = answer, .reason = reason, .stats = stats});
  };
  events.failed = [this, live, answer](const Error& error) {
    running_.erase({live->id, answer});
    text_.push({.kind = EngineOutput::Kind::failed,
                .live = live,
                .answer = answer,
                .error = std::make_shared<const Error>(error)});
  };
  return events;
}

// --- text thread ---

void Session::stop_answer(const LiveRequestPtr& live, int64_t answer) {
  commands_.push([this, live, answer](decode::Scheduler& scheduler) {
    if (const auto row = running_.find({live->id, answer}); row != running_.end()) scheduler.cancel(row->second);
  });
}

}  // namespace hearth::server
