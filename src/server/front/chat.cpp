#include "server/front/chat.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/front/keep_alive.h"

namespace hearth::server {

using Lock = std::unique_lock<std::mutex>;

namespace {

Problem dropped_adapter(const std::string& spec, const std::string& model) {
  Problem problem = problem_of(
      ClientError(ErrorKind::not_found, fmt::format("adapter {} is not mounted on {}: it is off", spec, model)));
  problem.code = "adapter_not_found";
  problem.param = "adapter";
  return problem;
}

}  // namespace

class Chat::TurnSink final : public AnswerSink {
 public:
  TurnSink(std::shared_ptr<Chat> chat, std::shared_ptr<frames::Turn> record)
      : chat_(std::move(chat)), record_(std::move(record)) {}

  void listen(std::function<void()> gone, std::function<void()> drained) override {
    {
      const Lock lock(chat_->mutex_);
      if (chat_->turn_.get() == this) {
        gone_ = std::move(gone);
        drained_ = std::move(drained);
        return;
      }
    }
    gone();
  }

  void at_hand(const json::Object& facts) override {
    const json::Value* window = facts.find("context_window");
    const Lock lock(chat_->mutex_);
    window_ = window ? *window : json::Value();
  }
  void begin(std::vector<net::Header>, const std::string&) override {}
  bool write(std::string_view frames) override { return chat_->write(this, frames); }
  void end() override { chat_->ended(this, nullptr); }
  void answer(const json::Value&, std::vector<net::Header>) override {
    HEARTH_CHECK(false, "a turn of a chat is always a stream");
  }
  void refuse(const Problem& problem) override { chat_->ended(this, &problem); }

 private:
  friend class Chat;
  const std::shared_ptr<Chat> chat_;
  // From listen() on its run's alone, until that has ended; before and behind that under the chat's mutex.
  const std::shared_ptr<frames::Turn> record_;
  // Under the chat's mutex:
  std::function<void()> gone_, drained_;
  json::Value window_;  // positions of the model that answers
};

Chat::Chat(Services& services, std::string owner)
    : services_(services),
      id_(random_id("chat_")),
      owner_(std::move(owner)),
      messages_(services.settings.limits.size_of(LimitId::messages)) {}

size_t Chat::bytes() const {
  const Lock lock(mutex_);
  size_t queued = 0;
  for (const std::string& text : queue_) queued += text.size();
  return messages_.bytes() + log_.bytes() + system_.size() + queued + json::dump(sampling_).size();
}

bool Chat::has_begun() const {
  const Lock lock(mutex_);
  return messages_.size() > 0;
}

void Chat::open(const Socket& socket, const json::Value& frame_id) {
  const std::optional<ModelView> view = model_view("");  // no other one was set yet
  const Lock lock(mutex_);
  socket_ = socket;
  if (!frame_id.is_null()) put(frames::ack(frame_id));
  put_ready(view);
}

void Chat::resume(const Socket& socket, const json::Value& frame_id, int64_t after_seq) {
  std::function<void()> drained;
  Socket before;
  for (bool is_done = false; !is_done;) {
    {
      const Lock lock(mutex_);
      if (after_seq > log_.last())
        throw RequestError("after_seq", fmt::format("after_seq is {}, the last frame of the conversation was {}",
                                                    after_seq, log_.last()));
      const auto missed = log_.after(after_seq);
      if ((is_done = missed || !turn_)) {
        before = std::exchange(socket_, socket);
        if (before != socket) is_full_ = false;
        for (const std::string& frame : missed.value_or(std::vector<std::string>())) socket_->send(frame);
        if (!missed) put(frames::history(id_, messages_.history(), messages_.head()));
        put(frames::ack(frame_id));
        if (queue_unsaid_ || (!missed && !queue_.empty())) put_queue();
        if (turn_) drained = turn_->drained_;
        else continue_soon();
      }
    }
    if (!is_done) abort_turn(Ends::for_history);  // a history holds what has ended
  }
  if (before && before != socket) before->close(1000, "the conversation goes on over another connection");
  if (drained) drained();
}

bool Chat::leave(const net::WebSocket* socket) {
  {
    const Lock lock(mutex_);
    if (socket_.get() != socket) return false;
    socket_ = nullptr;
    if (!queue_.empty()) queue_.clear(), put_queue();
  }
  abort_turn(Ends::when_left);
  const Lock lock(mutex_);
  return !socket_;
}

void Chat::drained(const net::WebSocket* socket) {
  std::function<void()> drained;
  {
    const Lock lock(mutex_);
    if (socket_.get() != socket) return;
    is_full_ = false;
    if (queue_unsaid_) put_queue();
    if (turn_ && !is_full_) drained = turn_->drained_;
  }
  if (drained) drained();
}

void Chat::send(const Socket& to, const std::string& frame) {
  const Lock lock(mutex_);
  if (socket_ == to) put(frame);
}

bool Chat::put(std::string_view frame) {
  const std::string& numbered = log_.add(frame);
  const bool has_room = !socket_ || socket_->send(numbered);
  is_full_ = !has_room;
  return has_room;
}

// It holds every queued text: a client that sends and does not read is told of the last state alone.
void Chat::put_queue() {
  queue_unsaid_ = is_full_ && socket_;
  if (!queue_unsaid_) put(frames::queue_update(queue_));
}

std::optional<ModelView> Chat::model_view(const std::string& name) const {
  try {
    const std::string id = services_.models.resolve(name);
    for (ModelView& view : services_.models.list())
      if (view.id == id) return std::move(view);
  } catch (const Error&) {  // there is no default model; a prompt hears of it
  }
  return std::nullopt;
}

Chat::Chosen Chat::choose(const std::string& name) const {
  Chosen chosen{.model = services_.models.choose(name), .adapters = {}};
  for (const AdapterView& view : services_.models.adapters())
    if (view.model == chosen.model.id) chosen.adapters.push_back(view.adapter.id);
  return chosen;
}

// After set_model. Another one may have come meanwhile: then that one's says what holds.
void Chat::say_ready() {
  std::string name;
  {
    const Lock lock(mutex_);
    name = model_;
  }
  const std::optional<ModelView> view = model_view(name);
  const Lock lock(mutex_);
  if (model_ == name) put_ready(view);
}

void Chat::put_ready(const std::optional<ModelView>& view) {
  put(frames::ready(view ? &*view : nullptr, id_, services_.settings.version));
}

void Chat::handle(const Socket& from, const frames::ClientFrame& frame) {
  std::optional<Start> begun;
  bool aborts = false, is_ready = false;
  std::optional<Chosen> chosen;
  std::exception_ptr no_model;
  if (frame.type == "set_model") try {
      chosen = choose(*present(frame.body, "model")->string());
    } catch (...) {
      no_model = std::current_exception();
    }
  {
    const Lock lock(mutex_);
    if (socket_ != from) return;
    const std::string id = json::dump(frame.id);
    if (std::ranges::find(done_, id) != done_.end()) return static_cast<void>(put(frames::ack(frame.id, true)));
    bool is_done = false;
    try {
      if (no_model) std::rethrow_exception(no_model);
      done_.push_back(id);  // first, so that what was done is known to be
      const Next next = apply(frame, chosen);
      is_done = true;
      if (done_.size() > kIdsKept) done_.pop_front();
      put(frames::ack(frame.id));
      is_ready = next.is_ready;
      if (next.queue_changed) put_queue();
      if (!next.dropped.empty()) put(frames::error({}, dropped_adapter(next.dropped, chosen->model.id)));
      if (!next.answers.empty()) begun = begin_turn(next.answers);
      aborts = next.aborts;
    } catch (...) {
      if (!is_done && !done_.empty() && done_.back() == id) done_.pop_back();
      const Problem problem = problem_at_hand();
      services_.counters.count("/ws/chat", problem);
      put(frames::error(frame.id, problem));
    }
  }
  if (is_ready) say_ready();
  if (aborts) abort_turn(Ends::always);
  start(std::move(begun));
}

const ChatMessage& Chat::message(const json::Object& body, std::string_view key) const {
  const std::string& id = *present(body, key)->string();
  if (const ChatMessage* found = messages_.find(id)) return *found;
  throw RequestError(std::string(key), fmt::format("{}: the conversation has no message {}", key, id));
}

std::string Chat::add_prompt(const std::string& text, std::string parent) {
  messages_.require_room(text.size());
  ChatMessage prompt{.id = messages_.next_id(), .parent = std::move(parent), .role = "user", .content = text};
  const std::string id = prompt.id;
  messages_.add(std::move(prompt));
  return id;
}

void Chat::set_sampling(const json::Object& body) {
  json::Object fields;
  for (const char* key : {"reasoning_effort", "adapter"})  // of set_thinking and set_adapter
    if (const json::Value* kept = sampling_.find(key)) fields[key] = *kept;
  for (const std::span<const Field> table : frames::sampling_tables())
    for (const Field& field : table)
      if (const json::Value* value = present(body, field.name)) fields[field.name] = *value;
  Generation checked;
  read_sampling(fields, checked);
  if (const json::Value* stop = present(fields, "stop")) read_stops(*stop, "stop");
  if (const std::string time = openai::read_keep_alive(fields); !time.empty()) parse_keep_alive(time);
  sampling_ = std::move(fields);
}

// An adapter that was chosen for the model before goes where this one does not have it, or not all of a stack.
std::string Chat::set_model(const Chosen& chosen) {
  model_ = chosen.model.id;
  const json::Value* kept = present(sampling_, "adapter");
  const std::string before = kept ? *kept->string() : "";
  if (!chosen.model.adapter.empty()) sampling_["adapter"] = chosen.model.adapter;
  if (!chosen.model.adapter.empty() || before.empty() || before == "none") return {};
  for (size_t at = 0; at <= before.size();) {
    const size_t end = std::min(before.find('+', at), before.size());
    if (std::ranges::find(chosen.adapters, before.substr(at, end - at)) == chosen.adapters.end()) {
      sampling_.erase("adapter");
      return before;
    }
    at = end + 1;
  }
  return {};
}

Chat::Next Chat::apply(const frames::ClientFrame& frame, const std::optional<Chosen>& chosen) {
  const json::Object& body = frame.body;
  const std::string& type = frame.type;
  const auto text = [&](std::string_view key) -> const std::string& { return *present(body, key)->string(); };
  const bool begins = type == "prompt" || type == "edit" || type == "regenerate";
  if (begins && turn_)
    fail(ErrorKind::busy, "turn {} is under way: queue what is to follow it, or abort it", turn_->record_->number);
  if (type == "prompt")
    return {.answers =
                add_prompt(text("text"), present(body, "parent") ? message(body, "parent").id : messages_.head())};
  if (type == "edit") {
    const ChatMessage& edited = message(body, "message");
    if (edited.role != "user") throw RequestError("message", fmt::format("message {} is not the user's", edited.id));
    return {.answers = add_prompt(text("text"), edited.parent)};
  }
  if (type == "regenerate") {
    const ChatMessage& shown = message(body, "message");
    messages_.require_room(0);
    return {.answers = shown.role == "user" ? shown.id : shown.parent};
  }
  if (type == "queue") {
    if (!turn_) return {.answers = add_prompt(text("text"), messages_.head())};
    if (queue_.size() >= kQueueMax) fail(ErrorKind::busy, "{} messages are queued, more may not be", queue_.size());
    std::string queued = text("text");
    size_t bytes = queued.size();
    for (const std::string& other : queue_) bytes += other.size();
    messages_.require_room(bytes);  // they all become part of the conversation
    queue_.push_back(std::move(queued));
    return {.queue_changed = true};
  }
  if (type == "unqueue") {
    const auto index = static_cast<size_t>(present(body, "index")->as_int("index"));
    if (index >= queue_.size())
      throw RequestError("index", fmt::format("index is {}, {} messages are queued", index, queue_.size()));
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
    return {.queue_changed = true};
  }
  if (type == "abort") {
    const bool had = !queue_.empty();
    queue_.clear();
    return {.aborts = true, .queue_changed = had};
  }
  if (type == "set_model") return {.is_ready = true, .dropped = set_model(*chosen)};
  if (type == "set_thinking") sampling_["reasoning_effort"] = text("effort");
  else if (type == "set_adapter") sampling_["adapter"] = text("spec");
  else if (type == "set_system") system_ = text("text");
  else if (type == "set_sampling") set_sampling(body);
  return {};
}

std::optional<Chat::Start> Chat::begin_turn(const std::string& parent) {
  GenerationCall run;
  Generation& g = run.generation;
  read_sampling(sampling_, g);
  if (const json::Value* most = present(sampling_, "max_tokens")) g.max_tokens = most->as_int("max_tokens");
  if (const json::Value* stop = present(sampling_, "stop")) g.stops = read_stops(*stop, "stop");
  g.messages = messages_.path(parent, system_);
  run.model = model_;
  run.stream = true;
  run.keep_alive = openai::read_keep_alive(sampling_);
  auto turn = std::make_shared<frames::Turn>();
  turn->number = ++turns_;
  turn->message = messages_.next_id();
  turn->parent = parent;
  run.writer = frames::turn_writer(turn);
  turn_ = std::make_shared<TurnSink>(shared_from_this(), turn);
  try {
    put(frames::turn_start(*turn));
  } catch (...) {  // it may have gone out all the same
    refuse_turn(problem_at_hand());
    return std::nullopt;
  }
  return Start{std::move(run), turn_};
}

void Chat::start(std::optional<Start> begun) {
  if (!begun) return;
  try {
    generate(services_, std::move(begun->run), {.owner = owner_, .request_id = random_id("req_"), .route = "/ws/chat"},
             begun->sink);
  } catch (...) {
    begun->sink->refuse(problem_at_hand());
  }
}

std::function<void()> Chat::refuse_turn(const Problem& problem) {
  put_lines(frames::turn_writer(turn_->record_)->failure(problem, ""));
  return end_turn("error");
}

// What was said before the turn's end is kept. Where memory is too short for that, the turn has not ended.
std::function<void()> Chat::end_turn(std::string_view reason) {
  const std::shared_ptr<TurnSink> sink = turn_;
  const frames::Turn& turn = *sink->record_;
  if (!messages_.find(turn.message))
    messages_.add({.id = turn.message,
                   .parent = turn.parent,
                   .role = "assistant",
                   .content = turn.answer.text,
                   .thinking = turn.answer.reasoning,
                   .model = turn.model,
                   .finish_reason = std::string(reason),
                   .usage = openai::usage_json(turn.usage())});
  put(frames::turn_end(turn, reason));  // a client that hears of it may begin the next turn
  turn_ = nullptr;
  const Usage usage = turn.usage();
  if (usage.prompt > 0) put(frames::context(usage.prompt + usage.completion, sink->window_));
  return [sink, gone = std::exchange(sink->gone_, nullptr), drained = std::exchange(sink->drained_, nullptr)] {};
}

// Not from here: the turn's run may still be at its end.
void Chat::continue_soon() {
  if (queue_.empty()) return;
  services_.http.after(net::Milliseconds(0), [self = shared_from_this()] { self->go_on(); });
}

bool Chat::put_lines(std::string_view frames) {
  bool goes_on = true;
  while (!frames.empty()) {
    const size_t end = frames.find('\n');
    goes_on = put(frames.substr(0, end));
    frames.remove_prefix(end + 1);
  }
  return goes_on;
}

bool Chat::write(const TurnSink* turn, std::string_view frames) {
  const Lock lock(mutex_);
  return turn_.get() != turn || put_lines(frames);
}

void Chat::ended(const TurnSink* turn, const Problem* problem) {
  std::function<void()> let_go;
  const Lock lock(mutex_);
  if (turn_.get() != turn) return;
  if (problem) put_lines(frames::turn_writer(turn->record_)->failure(*problem, ""));
  const std::string& reason = turn->record_->answer.reason;
  let_go = end_turn(reason.empty() ? "error" : reason == "cancelled" ? "aborted" : reason);
  continue_soon();
}

void Chat::go_on() {
  std::optional<Start> begun;
  {
    const Lock lock(mutex_);
    if (turn_ || queue_.empty() || !socket_) return;
    const std::string text = std::move(queue_.front());
    queue_.erase(queue_.begin());
    try {
      put_queue();
      begun = begin_turn(add_prompt(text, messages_.head()));
    } catch (...) {
      put(frames::error({}, problem_at_hand()));
      continue_soon();  // the next one may have room
    }
  }
  start(std::move(begun));
}

void Chat::abort_turn(Ends which) {
  for (;;) {
    std::shared_ptr<TurnSink> turn;
    std::function<void()> gone, let_go;
    {
      const Lock lock(mutex_);
      if (!turn_ || (which == Ends::when_left && socket_)) return;
      turn = turn_;
      gone = turn->gone_;
    }
    if (gone) gone();  // from here on its run writes no more
    const Lock lock(mutex_);
    if (turn_ != turn) return;
    if (!gone && turn->gone_) continue;  // its run came to listen meanwhile
    let_go = end_turn("aborted");
    if (which != Ends::for_history) continue_soon();
    return;
  }
}

}  // namespace hearth::server
