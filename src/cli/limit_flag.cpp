#include "cli/limit_flag.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "cli/units.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

using server::Limit;
using server::LimitUnit;

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::optional<int64_t> parsed(LimitUnit unit, std::string_view text) {
  switch (unit) {
    case LimitUnit::number: return parse_integer(text);
    case LimitUnit::bytes: return parse_size(text);
    case LimitUnit::milliseconds: {
      constexpr double kSecondsMax = 1e9;
      const auto seconds = parse_duration(text);
      if (!seconds || *seconds > kSecondsMax) return std::nullopt;
      return std::llround(*seconds * 1000);
    }
  }
  return std::nullopt;
}

// As --limit takes it.
std::string shown(LimitUnit unit, int64_t value) {
  constexpr int64_t kKiB = 1024, kSecond = 1000;
  switch (unit) {
    case LimitUnit::number: return fmt::format("{}", value);
    case LimitUnit::bytes:
      if (value % (kKiB * kKiB) == 0 && value > 0) return fmt::format("{}MiB", value / (kKiB * kKiB));
      return value % kKiB == 0 && value > 0 ? fmt::format("{}KiB", value / kKiB) : fmt::format("{}B", value);
    case LimitUnit::milliseconds:
      return value % kSecond == 0 ? fmt::format("{}s", value / kSecond) : fmt::format("{}ms", value);
  }
  return "";
}

std::string_view expected(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::number: return "a whole number";
    case LimitUnit::bytes: return "a size such as 64KiB";
    case LimitUnit::milliseconds: return "a duration such as 250ms or 10s";
  }
  return "";
}

void read_one(std::string_view text, server::Limits& limits) {
  const size_t equals = text.find('=');
  const std::string name(trimmed(text.substr(0, equals)));
  const Limit* row = server::find_limit(name);
  if (!row) {
    std::vector<std::string> names;
    for (const Limit& one : server::limit_table()) names.emplace_back(one.name);
    const std::vector<std::string> near = hub::nearest(name, names, 1);
    fail(ErrorKind::invalid_argument, "--limit: there is no limit '{}'{}; --limit help lists them", name,
         near.empty() ? "" : fmt::format(", did you mean {}?", near[0]));
  }
  const std::string_view value = equals == text.npos ? "" : trimmed(text.substr(equals + 1));
  const std::optional<int64_t> number = parsed(row->unit, value);
  if (!number || *number < row->least || *number > row->most)
    fail(ErrorKind::invalid_argument, "--limit {} is '{}': it must be {} from {} to {}", name, value,
         expected(row->unit), shown(row->unit, row->least), shown(row->unit, row->most));
  limits.set(row->id, *number);
}

}  // namespace

server::Limits read_limits(const std::vector<std::string>& texts) {
  server::Limits limits;
  for (std::string_view text : texts)
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      read_one(text.substr(0, comma), limits);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  return limits;
}

bool asks_for_limits(const std::vector<std::string>& texts) {
  return std::find(texts.begin(), texts.end(), "help") != texts.end();
}

std::string limits_help() {
  std::string out = fmt::format("{:20} {:>10} {:>8} {:>11}  {}\n", "limit", "default", "least", "most", "of");
  for (const Limit& row : server::limit_table())
    out += fmt::format("{:20} {:>10} {:>8} {:>11}  {}\n", row.name, shown(row.unit, row.fallback),
                       shown(row.unit, row.least), shown(row.unit, row.most), row.what);
  return out;
}

}  // namespace hearth::cli
