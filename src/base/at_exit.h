// What is done at the end of a block, however that is left.
#pragma once
#include <utility>

namespace hearth {

// Calls work() when it goes; work must not throw. Any thread.
template <class Work>
class AtExit {
 public:
  explicit AtExit(Work work) : work_(std::move(work)) {}
  ~AtExit() { work_(); }
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

 private:
  Work work_;
};

}  // namespace hearth
