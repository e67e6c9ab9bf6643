#include "server/front/recent_rate.h"

#include <algorithm>
#include <vector>

namespace hearth::server {

void RecentRate::add(int64_t now, double ms, int64_t tokens) {
  if (!(ms > 0) || tokens <= 0) return;
  const auto end = static_cast<double>(now);
  answers_.push_back({.begin = end - ms, .end = end, .tokens = tokens});
  if (answers_.size() > kAnswersMax) answers_.pop_front();
}

std::optional<double> RecentRate::per_second(int64_t now) const {
  std::vector<Answer> recent;
  for (const Answer& answer : answers_)
    if (answer.end > static_cast<double>(now - kMinuteMs)) recent.push_back(answer);
  if (recent.empty()) return std::nullopt;
  std::sort(recent.begin(), recent.end(), [](const Answer& a, const Answer& b) { return a.begin < b.begin; });
  // The length of all stretches together, what they share once.
  double ms = 0, reached = recent.front().begin;
  int64_t tokens = 0;
  for (const Answer& answer : recent) {
    tokens += answer.tokens;
    ms += std::max(0.0, answer.end - std::max(answer.begin, reached));
    reached = std::max(reached, answer.end);
  }
  return 1000 * static_cast<double>(tokens) / ms;
}

}  // namespace hearth::server
