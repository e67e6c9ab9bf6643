#include "base/clock.h"

#include <fmt/format.h>

#include "base/error.h"

namespace hearth {
namespace {

class SystemClock final : public Clock {
 public:
  std::chrono::nanoseconds monotonic() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::chrono::nanoseconds FakeClock::monotonic() const {
  const std::lock_guard lock(mutex_);
  return monotonic_;
}

WallTime FakeClock::wall() const {
  const std::lock_guard lock(mutex_);
  return wall_;
}

void FakeClock::advance(std::chrono::nanoseconds by) {
  HEARTH_CHECK(by.count() >= 0, "a clock advanced by {} ns", by.count());
  const std::lock_guard lock(mutex_);
  monotonic_ += by;
  wall_ += by;
}

void FakeClock::set_wall(WallTime wall) {
  const std::lock_guard lock(mutex_);
  wall_ = wall;
}

std::string iso8601(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

}  // namespace hearth
