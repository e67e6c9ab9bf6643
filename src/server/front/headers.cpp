#include "server/front/headers.h"

#include <sys/stat.h>

#include <condition_variable>
#include <mutex>

namespace hearth::server {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // between two looks at `stop`

}  // namespace

Headers read_headers(const WorkerCommand& command, const std::filesystem::path& model,
                     std::chrono::milliseconds at_most, const std::atomic<bool>& stop) {
  std::mutex mutex;
  std::condition_variable told;
  std::optional<Headers> headers;
  const auto tell = [&](Headers word) {
    const std::lock_guard lock(mutex);
    if (!headers) headers = std::move(word);  // its end comes behind its word
    told.notify_all();
  };
  const auto refusal = [](ErrorKind kind, std::string message, bool lasting) {
    return Headers{
        .facts = {}, .refusal = Refusal{.kind = kind, .message = std::move(message), .code = {}}, .lasting = lasting};
  };
  WorkerLink::Owner owner;
  owner.loaded = [&](json::Object facts) { tell({.facts = std::move(facts), .refusal = {}}); };
  owner.progress = [](int64_t, int64_t) {};
  owner.failed = [&](const Event& event) {
    tell({.facts = {}, .refusal = refusal_of(event, model), .lasting = event.reason != name_of(ErrorKind::io)});
  };
  owner.lost = [&] {
    tell(refusal(ErrorKind::corrupt_file, "the process that read its headers ended over them", true));
  };
  try {
    WorkerLink link(command, std::move(owner));
    const auto deadline = std::chrono::steady_clock::now() + at_most;
    std::unique_lock lock(mutex);
    while (!headers && !stop && std::chrono::steady_clock::now() < deadline)
      told.wait_for(lock, kLook, [&] { return headers.has_value(); });
    if (stop && !headers) fail(ErrorKind::cancelled, "the server is shutting down");
    if (!headers)
      headers =
          refusal(ErrorKind::io, fmt::format("its headers were not read within {} s", at_most.count() / 1000), false);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    return refusal(error.kind(), error.what(), false);
  }
  return std::move(*headers);
}

std::string files_state(const std::filesystem::path& model) {
  std::string state = model.string();
  const auto add = [&](const std::filesystem::path& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0)
      state += fmt::format("\n{} {} {} {}.{:09}", path.filename().string(), info.st_ino, info.st_size,
                           info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  };
  std::error_code ignored;
  add(model);
  if (std::filesystem::is_directory(model, ignored))
    for (std::filesystem::directory_iterator it(model, ignored), end; !ignored && it != end; it.increment(ignored))
      add(it->path());
  return state;
}

}  // namespace hearth::server
