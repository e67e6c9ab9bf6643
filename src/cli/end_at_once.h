// Ctrl-C for work that cannot be asked to stop, such as a step of the engine, which may take minutes, and that has
// begun something which must not stay, such as a temporary file.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/interrupt.h"

namespace hearth::cli {

// While one lives, SIGINT, SIGTERM and SIGHUP end the process with exit code 130, whatever its other threads do: after
// clean(), which runs on a thread of its own, and a line with the sentence. At most one at a time, and no Interrupt
// beside it. apart() and last() on one thread.
class EndAtOnce {
 public:
  EndAtOnce(std::string sentence, std::function<void()> clean);
  ~EndAtOnce();
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;

  // Runs step() apart from clean(): what both touch is whole for each of them. What it throws passes.
  void apart(const std::function<void()>& step);
  // The same; once it has succeeded the work is done, and a signal changes nothing any more.
  void last(const std::function<void()>& step);

 private:
  void watch(std::stop_token stop);

  const std::string sentence_;
  const std::function<void()> clean_;
  const Interrupt interrupt_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool done_ = false;
  std::jthread thread_;
};

}  // namespace hearth::cli
