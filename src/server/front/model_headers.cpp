#include "server/front/model_headers.h"

#include <algorithm>

#include "base/log.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // between two looks at `stop`

ModelHeaders refused(Refusal refusal, bool lasting) {
  return {.facts = {}, .refusal = std::move(refusal), .lasting = lasting};
}

// What is wrong with the files, and not with the process that reads them.
bool is_of_files(const Refusal& refusal) { return refusal.kind == ErrorKind::corrupt_file; }

}  // namespace

HeaderReader::HeaderReader(const WorkerCommand& command, std::filesystem::path model, const std::atomic<bool>& stop)
    : model_(std::move(model)), stop_(stop) {
  const auto tell = [this](ModelHeaders word) {
    const std::lock_guard lock(mutex_);
    if (!headers_) headers_ = std::move(word);  // its end comes behind its word
    told_.notify_all();
  };
  WorkerLink::Owner owner;
  owner.loaded = [tell](json::Object facts) { tell({.facts = std::move(facts), .refusal = {}}); };
  owner.progress = [](int64_t, int64_t) {};
  owner.failed = [this, tell](const Event& event) {
    Refusal refusal = refusal_of(event, model_);
    const bool lasting = is_of_files(refusal);
    tell(refused(std::move(refusal), lasting));
  };
  // Whoever ended it: it may have been a file, memory that was short, or a person. So it is tried again.
  owner.lost = [tell] {
    tell(refused({.kind = ErrorKind::device_lost,
                  .message = "the process that read its headers ended over them",
                  .code = "worker_lost"},
                 false));
  };
  try {
    link_.emplace(command, std::move(owner));
  } catch (const Error& error) {
    log::warn("front", "{}", error.what());
    tell(refused(refusal_of(error), false));
  }
}

bool HeaderReader::wait(Milliseconds at_most, const std::function<bool()>& over) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  std::unique_lock lock(mutex_);
  while (!over()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (stop_) fail(ErrorKind::cancelled, "the server is shutting down");
    if (left <= left.zero()) return false;
    told_.wait_for(lock, std::min<std::chrono::nanoseconds>(kLook, left), over);
  }
  return true;
}

ModelHeaders HeaderReader::headers(Milliseconds at_most) {
  if (!wait(at_most, [&] { return headers_.has_value(); }))
    return refused({.kind = ErrorKind::io,
                    .message = fmt::format("its headers were not read within {} s", at_most.count() / 1000),
                    .code = {}},
                   false);
  const std::lock_guard lock(mutex_);
  return *headers_;
}

json::Object HeaderReader::describe(json::Object body, const Descriptors& config, Milliseconds at_most) {
  if (!link_) throw ClientError(ErrorKind::device_lost, "the process that reads it could not be started");
  {
    const std::lock_guard lock(mutex_);
    description_.reset();
  }
  const auto tell = [this](const Event* error, const json::Value& reply) {
    const json::Value* facts = error ? nullptr : reply.get("adapter");
    const std::lock_guard lock(mutex_);
    description_.emplace();
    if (error) description_->refusal = refusal_of(*error, model_);
    else if (facts && facts->object()) description_->facts = *facts->object();
    told_.notify_all();
  };
  link_->call(FrameKind::adapter_describe, std::move(body), tell, config);
  if (!wait(at_most, [&] { return description_.has_value(); })) {
    link_->kill();
    throw ClientError(ErrorKind::device_lost, "it was not read in time");
  }
  const std::lock_guard lock(mutex_);
  const std::optional<Refusal>& refusal = description_->refusal;
  if (!refusal) return std::move(description_->facts);
  if (refusal->kind == ErrorKind::device_lost)
    throw ClientError(ErrorKind::device_lost, "the process that read it ended over it");
  throw ClientError(refusal->kind, refusal->message);
}

ModelHeaders read_headers(const WorkerCommand& command, const std::filesystem::path& model,
                          std::chrono::milliseconds at_most, const std::atomic<bool>& stop) {
  return HeaderReader(command, model, stop).headers(at_most);
}

}  // namespace hearth::server
