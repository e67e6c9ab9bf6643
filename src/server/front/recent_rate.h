// How fast a model's answers came lately, from what their ends tell.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace hearth::server {

// Tokens of all answers together per second in which one was under way: what prompts and pauses take is not counted,
// and two answers at a time count as the sum of both. Times in milliseconds of one steady clock. One thread at a time.
class RecentRate {
 public:
  // An answer has ended at `now`; its `tokens` were drawn within the `ms` before. 0 of either says nothing.
  void add(int64_t now, double ms, int64_t tokens);
  // Of the answers that ended within the last minute, the last 256 of them at most; nullopt: there are none.
  std::optional<double> per_second(int64_t now) const;

 private:
  static constexpr int64_t kMinuteMs = 60'000;
  static constexpr size_t kAnswersMax = 256;
  struct Answer {
    double begin = 0, end = 0;
    int64_t tokens = 0;
  };
  std::deque<Answer> answers_;  // by their ends
};

}  // namespace hearth::server
