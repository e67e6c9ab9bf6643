#include "server/front/worker_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/spawn.h"
#include "server/client_sentence.h"
#include "server/error_at_hand.h"

namespace hearth::server {
namespace {

constexpr int kEndMs = 2'000;  // from the end of the wire to that of the process

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

// All that is a path in its words (of its model first of all) and in its environment: its home, the store, caches.
std::vector<std::filesystem::path> folders_of(const WorkerCommand& command) {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](std::string_view value) {
    const std::vector<std::filesystem::path> more = with_parents(std::filesystem::path(value).lexically_normal());
    folders.insert(folders.end(), more.begin(), more.end());
  };
  for (const std::string& word : command.argv) add(word);
  for (const std::string& variable : command.environment)
    if (!variable.starts_with("PATH=")) add(std::string_view(variable).substr(variable.find('=') + 1));
  return folders;
}

// The child gets the wire and the three standard descriptors; everything else of ours is close-on-exec. Signals are as
// at a program's start, in a process group of its own: Ctrl-C is the front's to answer.
pid_t start(const WorkerCommand& command, int wire) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, wire, kWorkerWireFd);  // also clears close-on-exec, if they are the same
  const SpawnAttributes attributes(POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command.argv[0].c_str(), &files, attributes.get(),
                                  pointers(command.argv).data(), pointers(command.environment).data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) fail(ErrorKind::io, "no worker could be started from {}: {}", command.argv[0], std::strerror(error));
  return pid;
}

}  // namespace

WorkerLink::WorkerLink(const WorkerCommand& command, Owner owner)
    : owner_(std::move(owner)), folders_(folders_of(command)) {
  const WirePair pair = make_wire_pair();
  wire_ = std::make_unique<Wire>(pair.front);
  try {
    pid_ = start(command, pair.worker);
  } catch (const Error&) {
    ::close(pair.worker);
    throw;
  }
  ::close(pair.worker);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  std::string load;
  append_frame(load, {FrameKind::load, json::Object()});
  outgoing_.push({std::move(load)});
  reader_ = std::thread([this] { read_frames(); });
  writer_ = std::thread([this] { write_frames(); });
}

WorkerLink::~WorkerLink() {
  kill();
  wire_->shut_down();
  reader_.join();
  outgoing_.close();
  writer_.join();
  if (pidfd_ >= 0) ::close(pidfd_);
}

// False: the worker is lost. What is idle is silent: that does not count.
bool WorkerLink::open_request(uint64_t id, Open request) {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  if (open_.empty()) heard_ms_ = now_ms();
  open_.emplace(id, std::make_shared<Open>(std::move(request)));
  return true;
}

// A request that is at fault is told of in words that may quote it, slashes and all.
Event WorkerLink::told_event(const Frame& frame) const {
  Event event = event_of(frame);
  if (event.kind != Event::Kind::error) return event;
  event.text = event.reason == name_of(ErrorKind::invalid_argument) ? without_folders(event.text, folders_)
                                                                    : client_sentence(event.text, folders_);
  return event;
}

Event WorkerLink::lost_event(uint64_t id, bool untaken) {
  Event event{.kind = Event::Kind::error, .id = id, .answer = kWholeRequest};
  event.text = "the model's worker process ended before the answer did; send the request again";
  event.reason = name_of(ErrorKind::device_lost);
  event.code = "worker_lost";
  event.untaken = untaken;
  return event;
}

// Of the exception that is handled where this is called.
Event WorkerLink::event_at_hand(uint64_t id) {
  return with_error_at_hand([id](const Error& error) {
    Event event{.kind = Event::Kind::error, .id = id, .answer = kWholeRequest};
    event.text = error.what();
    event.reason = name_of(error.kind());
    return event;
  });
}

// Gives what is to be told of a request that was not sent; where this throws, it is not open.
std::optional<Event> WorkerLink::send_request(uint64_t id, Open request, Outgoing frame) {
  if (!open_request(id, std::move(request))) return lost_event(id, true);
  try {
    outgoing_.push(std::move(frame));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (open_.erase(id) > 0) throw;  // else its end is told by lose()
  }
  return std::nullopt;
}

uint64_t WorkerLink::submit(Generation generation, Sink sink, Taken taken) {
  const uint64_t id = generation.id = next_id_++;
  std::optional<Event> unsent;
  try {
    std::string frame;
    append_frame(frame, {FrameKind::submit, to_json(generation)});  // numbers may be longer than in the body
    unsent = send_request(id, {.sink = sink, .taken = std::move(taken), .answers = generation.n}, {std::move(frame)});
  } catch (...) {
    unsent = event_at_hand(id);
  }
  if (unsent) sink(*unsent);
  return id;
}

void WorkerLink::cancel(uint64_t id) { tell(FrameKind::cancel, id); }
void WorkerLink::hold(uint64_t id) { tell(FrameKind::hold, id); }
void WorkerLink::release(uint64_t id) { tell(FrameKind::release, id); }

void WorkerLink::tell(FrameKind kind, uint64_t id) {
  json::Object body;
  body["id"] = id;
  std::string frame;
  append_frame(frame, {kind, std::move(body)});
  outgoing_.push({std::move(frame)});
}

uint64_t WorkerLink::call(FrameKind kind, json::Object body, Reply reply, Descriptors files, Taken taken) {
  const uint64_t id = next_id_++;
  const bool is_look = kind == FrameKind::stats;
  std::optional<Event> unsent;
  try {
    body["id"] = id;
    std::string frame;
    append_frame(frame, {kind, std::move(body)});
    unsent = send_request(id,
                          {.reply = reply,
                           .taken = std::move(taken),
                           .is_look = is_look,
                           .of_engine = is_look || kind == FrameKind::embed},
                          {std::move(frame), std::move(files)});
  } catch (...) {
    unsent = event_at_hand(id);
  }
  if (unsent) reply(&*unsent, {});
  return id;
}

void WorkerLink::drain() {
  std::string frame;
  append_frame(frame, {FrameKind::drain, json::Object()});
  outgoing_.push({std::move(frame)});
}

bool WorkerLink::wait_end(std::chrono::milliseconds at_most) const {
  pollfd end{.fd = pidfd_, .events = POLLIN, .revents = 0};
  return pidfd_ < 0 || ::poll(&end, 1, static_cast<int>(at_most.count())) != 0;
}

// By pidfd: the number may belong to another process by now.
void WorkerLink::kill() {
  killed_ = true;
  if (pidfd_ >= 0) ::syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0);
}

int64_t WorkerLink::silence_ms() const {
  const std::lock_guard lock(mutex_);
  return open_.empty() ? 0 : std::max<int64_t>(0, now_ms() - heard_ms_);
}

void WorkerLink::ask_for_sign() {
  if (!sign_asked_.exchange(true)) look([this](const Event*, const json::Value&) { sign_asked_ = false; });
}

int64_t WorkerLink::open_requests() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(open_, [](const auto& one) { return !one.second->is_look; });
}

WorkerActivity WorkerLink::activity() const {
  const std::lock_guard lock(mutex_);
  WorkerActivity activity{.tokens_per_second = rate_.per_second(now_ms())};
  for (const auto& [id, open] : open_)
    if (open->sink) ++(open->admitted ? activity.running : activity.waiting);
  return activity;
}

void WorkerLink::write_frames() {
  std::vector<Outgoing> frames;
  while (outgoing_.take_all(frames))
    for (const Outgoing& frame : frames) {
      try {
        if (frame.files) wire_->send_files(frame.bytes, *frame.files);
        else wire_->send_bytes(frame.bytes);
      } catch (const Error&) {
        return;  // the reader sees the end too, and tells everyone
      }
    }
}

void WorkerLink::read_frames() {
  try {
    while (const std::optional<Frame> frame = wire_->receive()) {
      dispatch(*frame);
    }
  } catch (const Error& error) {
    log::error("front", "worker {}: {}", pid_, error.what());
    kill();
  }
  lose();
}

void WorkerLink::dispatch(const Frame& frame) {
  if (frame.kind == FrameKind::loaded) return owner_.loaded(*frame.body.object());
  const auto whole = [&](const char* key) {
    const json::Value* value = frame.body.get(key);
    return value ? value->as_int(key) : 0;
  };
  if (frame.kind == FrameKind::progress) return owner_.progress(whole("done"), whole("total"));
  const auto id = static_cast<uint64_t>(whole("id"));
  if (frame.kind == FrameKind::error && id == 0) return owner_.failed(event_of(frame));
  std::shared_ptr<Open> open;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return;  // of a request that has ended here
    open = found->second;
    if (frame.kind == FrameKind::taken) open->is_taken = true;
    else if (frame.kind == FrameKind::reply ? open->of_engine : frame.kind != FrameKind::error) heard_ms_ = now_ms();
    if (frame.kind == FrameKind::admitted) open->admitted = true;
    if (frame.kind != FrameKind::reply && frame.kind != FrameKind::error && frame.kind != FrameKind::admitted &&
        frame.kind != FrameKind::taken)
      has_made_tokens_ = true;
    const bool whole_request = frame.kind == FrameKind::reply ||
                               (frame.kind == FrameKind::error && (open->reply || whole("answer") == kWholeRequest));
    const bool ends =
        whole_request || ((frame.kind == FrameKind::finish || frame.kind == FrameKind::error) && --open->answers == 0);
    if (ends) open_.erase(found);
  }
  if (frame.kind == FrameKind::taken) {
    if (const Taken taken = std::move(open->taken)) taken();
    return;
  }
  if (frame.kind == FrameKind::reply) return open->reply(nullptr, frame.body);
  const Event event = told_event(frame);
  if (event.kind == Event::Kind::finish) {
    const std::lock_guard lock(mutex_);
    rate_.add(now_ms(), event.usage.decode_ms, event.usage.completion - 1);  // the first one was the prompt's
  }
  if (open->reply) open->reply(&event, {});
  else open->sink(event);
}

void WorkerLink::lose() {
  std::map<uint64_t, std::shared_ptr<Open>> open;
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    open.swap(open_);
  }
  // It closed the wire, so it is about to end; one that does not is ended.
  pollfd end{.fd = pidfd_, .events = POLLIN, .revents = 0};
  if (pidfd_ >= 0 && ::poll(&end, 1, kEndMs) == 0) kill();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  const bool as_told = killed_ && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (WIFSIGNALED(status) && !as_told) log::warn("front", "worker {} was ended by signal {}", pid_, WTERMSIG(status));
  // One that the front ended, because it was silent for too long, has made its requests wait enough. Asked before the
  // owner hears of the end, and ends what is left of it.
  const bool by_itself = !killed_;
  owner_.lost();  // first: a client that asks again at once is to find the next worker, not this one
  for (const auto& [id, one] : open) {
    const Event event = lost_event(id, by_itself && !one->is_taken);
    if (one->reply) one->reply(&event, {});
    else one->sink(event);
  }
}

}  // namespace hearth::server
