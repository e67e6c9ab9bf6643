// Where two threads meet: a queue that a consumer waits at.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace hearth {

enum class Wake : uint8_t { now, later };  // later: a consumer that waits until some time need not know before

// Any number of producers, one consumer. Bounded by its users: what may wait is counted where it is let in.
template <class Item>
class Queue {
 public:
  using Clock = std::chrono::steady_clock;

  // False, and nothing is kept, once the queue is closed.
  bool push(Item item, Wake wake = Wake::now) {
    bool tell = true;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(item));
      if (wake == Wake::now) urgent_ = true;
      else tell = !patient_;
    }
    if (tell) filled_.notify_one();
    return true;
  }

  // All that waits, in order, into `out`, whose room is used again. Waits for something; false: closed and empty.
  bool take_all(std::vector<Item>& out) {
    out.clear();
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return closed_ || !items_.empty(); });
    urgent_ = false;
    std::swap(out, items_);
    return !out.empty();
  }

  // The same, but waits until `time` for something pushed with Wake::now, then takes what there is, perhaps nothing.
  bool take_all_until(std::vector<Item>& out, Clock::time_point time) {
    out.clear();
    std::unique_lock lock(mutex_);
    patient_ = true;
    filled_.wait_until(lock, time, [&] { return closed_ || urgent_; });
    patient_ = urgent_ = false;
    std::swap(out, items_);
    return !closed_ || !out.empty();
  }

  // The same, but waits at most so long for anything at all: perhaps nothing.
  void take_within(std::chrono::nanoseconds at_most, std::vector<Item>& out) {
    out.clear();
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, at_most, [&] { return closed_ || !items_.empty(); });
    urgent_ = false;
    std::swap(out, items_);
  }

  // The same without waiting: perhaps nothing.
  void take_ready(std::vector<Item>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    urgent_ = false;
    std::swap(out, items_);
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<Item> items_;
  bool closed_ = false;
  bool urgent_ = false;   // something here was pushed with Wake::now
  bool patient_ = false;  // the consumer is in take_all_until()
};

}  // namespace hearth
