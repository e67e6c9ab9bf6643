#include "cli/end_at_once.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::cli {

EndAtOnce::EndAtOnce(std::string sentence, std::function<void()> clean)
    : sentence_(std::move(sentence)), clean_(std::move(clean)), interrupt_(Interrupt::Also::termination) {
  thread_ = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
}

EndAtOnce::~EndAtOnce() {
  thread_.request_stop();
  thread_.join();  // before what it looks at goes
}

void EndAtOnce::apart(const std::function<void()>& step) {
  const std::lock_guard lock(mutex_);
  step();
}

void EndAtOnce::last(const std::function<void()>& step) {
  const std::lock_guard lock(mutex_);
  step();
  done_ = true;
}

void EndAtOnce::watch(std::stop_token stop) {
  constexpr std::chrono::milliseconds kLook{20};  // a signal's handler may wake nobody
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !done_) {
    if (interrupt_.requested()) {
      clean_();
      std::fflush(stdout);
      std::fprintf(stderr, "hearth: %s\n", printable(sentence_, kSentenceBytesMax).c_str());
      ::_exit(exit_code(ErrorKind::cancelled));
    }
    changed_.wait_for(lock, stop, kLook, [] { return false; });
  }
}

}  // namespace hearth::cli
