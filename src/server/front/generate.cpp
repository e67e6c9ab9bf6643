#include "server/front/generate.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "net/sse.h"
#include "server/front/errand.h"
#include "server/front/keep_alive.h"

namespace hearth::server {
namespace {

using Clock = std::chrono::steady_clock;

class ExchangeSink final : public AnswerSink {
 public:
  ExchangeSink(Services& services, Call call) : services_(services), call_(std::move(call)) {
    call_.request.body.clear();
  }

  void listen(std::function<void()> gone, std::function<void()> drained) override {
    call_.exchange->on_drained(std::move(drained));
    call_.exchange->on_closed([gone = std::move(gone)](net::Exchange::End end) {
      if (end != net::Exchange::End::done) gone();
    });
  }

  void begin(std::vector<net::Header> headers, const std::string& ping) override {
    headers.insert(headers.end(), call_.headers.begin(), call_.headers.end());
    call_.exchange->begin_stream(200, std::move(headers), std::string(net::kEventStream));
    if (const std::chrono::milliseconds silence = services_.live.ping; silence.count() > 0)
      services_.http.ping(call_.exchange, ping, silence);
  }
  bool write(std::string_view bytes) override { return call_.exchange->write(bytes); }
  void end() override { call_.exchange->end(); }

  void answer(const json::Value& document, std::vector<net::Header> headers) override {
    net::Response response = json_response(200, document);
    response.headers = std::move(headers);
    call_.answer(std::move(response));
  }
  void refuse(const Problem& problem) override { call_.refuse(problem); }

 private:
  Services& services_;
  Call call_;
};

// One request under way. Events come on the link's thread, the client's end on an I/O thread: both under the lock.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Services& services, GenerationCall run, Asker asker, std::shared_ptr<AnswerSink> sink)
      : services_(services),
        call_(std::move(run)),
        asker_(std::move(asker)),
        sink_(std::move(sink)),
        received_(Clock::now()) {
    call_.generation.owner = asker_.owner;
    call_.generation.stream = call_.stream;
    call_.generation.strict_admission = services.live.strict_admission;
    max_tokens_ = call_.generation.max_tokens;
    answers_.resize(static_cast<size_t>(call_.generation.n));
    last_tokens_.resize(answers_.size());
    head_.request_id = asker_.request_id;
    head_.created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  }

  void begin() {
    const auto self = shared_from_this();
    try {
      const ModelChoice choice = services_.models.choose(call_.model);
      head_.model = choice.id;
      if (call_.generation.adapter.empty()) call_.generation.adapter = choice.adapter;
    } catch (const Error& error) {
      return fail(problem_of(error));
    }
    if (const auto problem = count()) return fail(*problem);
    try {
      if (!call_.keep_alive.empty()) keep_alive_ = parse_keep_alive(call_.keep_alive);
    } catch (const Error& error) {
      return fail(problem_of(error));
    }
    errand_ = Errand::make([generation = std::move(call_.generation), weak = weak_from_this()](
                               WorkerLink& worker, const std::shared_ptr<Errand>& errand) {
      const auto sink = [run = weak.lock()](const Event& event) { run->on_event(event); };
      return worker.submit(generation, sink, errand->taken());
    });
    call_.generation = {};
    sink_->listen([self] { self->closed(); },
                  [weak = weak_from_this()] {
                    if (const auto still = weak.lock()) still->drained();
                  });
    acquire();
  }

  // Of what begin() threw. Where its end is what could not be told, that goes on to who began it.
  void fail_at_hand() {
    const Problem problem = problem_at_hand();
    const std::lock_guard lock(mutex_);
    if (ended_) throw;
    finish_with(problem);
  }

  ~Run() {
    if (!counted_) return;
    const std::lock_guard lock(services_.counters.mutex);
    --services_.counters.running;
    if (--services_.counters.by_owner[asker_.owner] == 0) services_.counters.by_owner.erase(asker_.owner);
  }

 private:
  static constexpr int64_t kDecodingMax = 64;  // beside those that wait

  // One more request, of this owner and of all; or why not.
  std::optional<Problem> count() {
    const Limits& limits = services_.settings.limits;
    const std::lock_guard lock(services_.counters.mutex);
    if (const int64_t most = limits[LimitId::queue] + kDecodingMax; services_.counters.running >= most)
      return problem_of(LimitError(std::string(row_of(LimitId::queue).name),
                                   fmt::format("{} requests wait already", most), ErrorKind::busy));
    int64_t& of_owner = services_.counters.by_owner[asker_.owner];
    if (!asker_.owner.empty() && of_owner >= limits[LimitId::streams_per_key])
      return Problem{.status = 429,
                     .type = "rate_limit_error",
                     .message = fmt::format("{} requests of this key run already", of_owner),
                     .param = {},
                     .code = "rate_limit_exceeded",
                     .retry_after_s = 1,
                     .more = {},
                     .kind = std::string(name_of(ErrorKind::busy)),
                     .limit = std::string(row_of(LimitId::streams_per_key).name)};
    ++services_.counters.running;
    ++of_owner;
    counted_ = true;
    return std::nullopt;
  }

  void acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;  // for one that nobody waits for no model is loaded
    }
    services_.models.acquire(
        head_.model,
        [self = shared_from_this()](const std::shared_ptr<WorkerLink>& worker, const json::Object& facts) {
          self->give(worker, facts);
        },
        [self = shared_from_this()](const Refusal& refusal) { self->fail(problem_of(refusal)); });
  }

  void give(const std::shared_ptr<WorkerLink>& worker, const json::Object& facts) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      sink_->at_hand(facts);
    }
    errand_->give(worker);
  }

  void on_event(const Event& event) {
    if (errand_->goes_again(event)) return acquire();
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (event.kind == Event::Kind::error) return finish_with(problem_of(event));
    if (event.kind == Event::Kind::admitted) return admitted(event);
    note_tokens(event);
    answers_[static_cast<size_t>(event.answer)].add(event);
    if (event.kind == Event::Kind::finish) ++finished_;
    if (call_.stream) write(call_.writer->event(event));
    if (finished_ == answers_.size()) complete();
  }

  void admitted(const Event& event) {
    if (streaming_ || admitted_) return;
    admitted_ = true;
    usage_ = event.usage;
    (event.usage.cached > 0 ? services_.counters.cache_hits : services_.counters.cache_misses)++;
    if (!call_.stream) return;
    sink_->begin(headers(), call_.writer->ping());
    streaming_ = true;
    write(call_.writer->begin(head_, event.usage));
  }

  std::vector<net::Header> headers() const {
    std::vector<net::Header> list = {{"hearth-numerics", services_.settings.numerics}};
    if (call_.stream) list.emplace_back("Cache-Control", "no-cache");
    if (max_tokens_ && usage_.max_tokens < *max_tokens_)
      list.emplace_back("hearth-max-tokens", std::to_string(usage_.max_tokens));
    return list;
  }

  void note_tokens(const Event& event) {
    if (event.tokens == 0 || !call_.stream) return;
    const auto now = Clock::now();
    Clock::time_point& last = last_tokens_[static_cast<size_t>(event.answer)];
    const std::lock_guard lock(services_.counters.mutex);
    if (!std::exchange(has_tokens_, true)) services_.counters.ttft.add(seconds(now - received_));
    if (last != Clock::time_point())
      services_.counters.inter_token.add(seconds(now - last) / static_cast<double>(event.tokens), event.tokens);
    last = now;
  }
  // Of an answer that comes as a whole: by the worker's account.
  void note_times(const Usage& usage) {
    if (call_.stream || usage.completion == 0) return;
    const std::lock_guard lock(services_.counters.mutex);
    services_.counters.ttft.add((usage.queue_ms + usage.prefill_ms) / 1e3);
    services_.counters.inter_token.add(usage.decode_ms / 1e3 / static_cast<double>(usage.completion), usage.completion);
  }
  static double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  // A client that does not read holds its own answer up, and nobody else's.
  void write(const std::string& bytes) {
    if (bytes.empty() || sink_->write(bytes) || !errand_->hold()) return;
    services_.counters.count(LimitId::stream_buffer);
  }

  // Behind a write that still has to say that it pauses.
  void drained() {
    const std::lock_guard lock(mutex_);
    if (!ended_) errand_->release();
  }

  void complete() {
    ended_ = true;
    const Usage usage = total(answers_);
    note_times(usage);
    services_.counters.prompt_tokens += usage.prompt - usage.cached;
    services_.counters.cached_tokens += usage.cached;
    services_.counters.completion_tokens += usage.completion;
    services_.counters.count(std::string(asker_.route), 200);
    json::Value document;
    if (!call_.stream || call_.keep) document = call_.writer->document(head_, answers_);
    if (call_.keep) call_.keep(document);  // before the client hears of the end: it may come back to it at once
    if (call_.stream) {
      write(call_.writer->end());
      sink_->end();
    } else {
      sink_->answer(document, headers());
    }
    errand_->end();
    release();
  }

  void fail(const Problem& problem) {
    const std::lock_guard lock(mutex_);
    if (!ended_) finish_with(problem);
  }

  void finish_with(const Problem& problem) {
    ended_ = true;
    services_.counters.count(std::string(asker_.route), problem);
    if (streaming_) {
      write(call_.writer->failure(problem, head_.request_id));
      sink_->end();
    } else {
      sink_->refuse(problem);
    }
    if (errand_) errand_->cancel();
    release();
  }

  void closed() {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    services_.counters.count(std::string(asker_.route), 499);
    if (errand_) errand_->cancel();
    release();
  }

  // Lets go of what refers back to this.
  void release() {
    if (keep_alive_) services_.models.keep_alive(head_.model, *keep_alive_);
    sink_ = nullptr;
  }

  Services& services_;
  GenerationCall call_;
  const Asker asker_;
  std::shared_ptr<AnswerSink> sink_;  // null when the answer has ended
  const Clock::time_point received_;
  std::mutex mutex_;
  AnswerHead head_;
  std::vector<Collected> answers_;
  size_t finished_ = 0;
  std::shared_ptr<Errand> errand_;     // null until its model is found
  std::optional<int64_t> max_tokens_;  // as they were asked for
  Usage usage_;
  std::optional<std::optional<std::chrono::milliseconds>> keep_alive_;  // what the request asks for its model
  std::vector<Clock::time_point> last_tokens_;                          // by answer
  bool has_tokens_ = false, ended_ = false, streaming_ = false, admitted_ = false, counted_ = false;
};

}  // namespace

void generate(Services& services, GenerationCall run, Asker asker, std::shared_ptr<AnswerSink> sink) {
  const auto begun = std::make_shared<Run>(services, std::move(run), std::move(asker), std::move(sink));
  try {
    begun->begin();
  } catch (...) {
    begun->fail_at_hand();
  }
}

void generate(Services& services, GenerationCall run, Call call) {
  Asker asker{.owner = call.owner, .request_id = call.request_id, .route = call.route};
  generate(services, std::move(run), std::move(asker), std::make_shared<ExchangeSink>(services, std::move(call)));
}

}  // namespace hearth::server
