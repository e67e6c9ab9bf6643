// Refusals of a thread that may not wait, since others' answers come from it: what gets no memory is told later.
#pragma once
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <utility>

#include "server/worker/guarded.h"

namespace hearth::server {

// One thread, but for room().
class Unsaid {
 public:
  using Tell = std::function<void(const Error&)>;
  struct One {
    Tell tell;  // ends the request; may be called again where it did not end
    std::exception_ptr what{};
    std::chrono::steady_clock::time_point since{};
  };
  using Room = std::list<One>;

  // After `at_most` memory is given up on: the process ends, and the front tells all that was asked of it.
  explicit Unsaid(std::chrono::milliseconds at_most = std::chrono::seconds(1)) : at_most_(at_most) {}

  // For one refusal: made on a thread that may wait, so that the one that refuses needs no memory. Any thread.
  static Room room(Tell tell) {
    Room room;
    room.push_back({.tell = std::move(tell)});
    return room;
  }

  // Runs work(). What it throws, memory that cannot be had too, goes to the room's tell(), here or in again().
  template <class Work>
  void guard(Room& room, const Work& work) {
    try {
      return work();
    } catch (...) {
      room.front().what = std::current_exception();
    }
    room.front().since = std::chrono::steady_clock::now();
    waiting_.splice(waiting_.end(), room);
    again();
  }

  // Tells what is left, as far as there is memory. Throws std::bad_alloc where one waits for too long.
  void again() {
    while (!waiting_.empty()) {
      try {
        tell(waiting_.front());
      } catch (const std::bad_alloc&) {
        if (std::chrono::steady_clock::now() - waiting_.front().since >= at_most_) throw;
        return;
      }
      waiting_.pop_front();
    }
  }

  bool empty() const { return waiting_.empty(); }

 private:
  static void tell(const One& one) {
    try {
      std::rethrow_exception(one.what);
    } catch (...) {
      with_error_at_hand([&](const Error& error) { refuse_with(error, one.tell); });
    }
  }

  const std::chrono::milliseconds at_most_;
  std::list<One> waiting_;  // in the order in which they came
};

}  // namespace hearth::server
