// Time as a dependency: passed in, so that schedulers, logs and time-outs are tested without waiting.
#pragma once
#include <chrono>
#include <mutex>
#include <string>

namespace hearth {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

// Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Since an arbitrary origin; never goes back. For durations and deadlines.
  virtual std::chrono::nanoseconds monotonic() const = 0;
  // Of the calendar, UTC; may jump when the machine's clock is set. For records shown to people.
  virtual WallTime wall() const = 0;
};

// The machine's clocks. Lives for the whole process.
const Clock& system_clock();

// Stands still until told otherwise.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime wall = WallTime{}) : wall_(wall) {}

  std::chrono::nanoseconds monotonic() const override;
  WallTime wall() const override;

  void advance(std::chrono::nanoseconds by);  // both clocks; by >= 0
  void set_wall(WallTime wall);               // somebody sets the machine's clock: monotonic time is not touched

 private:
  mutable std::mutex mutex_;
  std::chrono::nanoseconds monotonic_{0};
  WallTime wall_;
};

// ISO 8601 in UTC with milliseconds: 2026-11-29T20:19:29.123Z. Rounds down.
std::string iso8601(WallTime time);

}  // namespace hearth
