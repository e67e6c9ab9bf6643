// Where two threads meet: a queue that a consumer waits at.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace hearth {

// Any number of producers, one consumer. Bounded by its users: what may wait is counted where it is let in.
template <class Item>
class Queue {
 public:
  // False, and nothing is kept, once the queue is closed.
  bool push(Item item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    return true;
  }

  // All that waits, in order, into `out`, whose room is used again. Waits for something; false: closed and empty.
  bool take_all(std::vector<Item>& out) {
    out.clear();
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return closed_ || !items_.empty(); });
    std::swap(out, items_);
    return !out.empty();
  }

  // The same without waiting: perhaps nothing.
  void take_ready(std::vector<Item>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
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
};

}  // namespace hearth
