#include "server/front/keep_alive.h"

#include <charconv>

#include "server/http/problem.h"

namespace hearth::server {

std::optional<std::chrono::milliseconds> parse_keep_alive(const std::string& text) {
  const auto bad = [&] {
    return RequestError("keep_alive", "keep_alive must be seconds or a duration like 10m, or -1");
  };
  const bool for_good = text.starts_with('-');
  double total = 0;
  const char* at = text.data() + for_good;
  const char* end = text.data() + text.size();
  if (at == end) throw bad();
  while (at != end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !(value >= 0) || value > 1e9) throw bad();
    at = next;
    double unit = 1;
    if (at != end) {
      const std::string_view rest(at, static_cast<size_t>(end - at));
      const struct {
        std::string_view name;
        double seconds;
      } units[] = {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
      bool known = false;
      for (const auto& u : units)
        if (!known && rest.starts_with(u.name)) {
          unit = u.seconds;
          at += u.name.size();
          known = true;
        }
      if (!known) throw bad();
    }
    total += value * unit;
  }
  if (total > 1e9) throw bad();  // the clock counts nanoseconds
  if (for_good) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(total * 1000));
}

}  // namespace hearth::server
