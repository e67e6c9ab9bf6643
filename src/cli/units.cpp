#include "cli/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/ascii.h"

namespace hearth::cli {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kSizes[] = {
    {"", 1},
    {"b", 1},
    {"k", 1e3},
    {"kb", 1e3},
    {"m", 1e6},
    {"mb", 1e6},
    {"g", 1e9},
    {"gb", 1e9},
    {"t", 1e12},
    {"tb", 1e12},
    {"ki", 1024.0},
    {"kib", 1024.0},
    {"mi", 1048576},
    {"mib", 1048576},
    {"gi", 1073741824},
    {"gib", 1073741824},
    {"ti", 1099511627776.0},
    {"tib", 1099511627776.0},
};
constexpr Unit kDurations[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};

template <size_t n>
std::optional<double> with_unit(std::string_view text, const Unit (&units)[n]) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::optional<double> value = parse_number(text.substr(0, digits));
  if (!value) return std::nullopt;
  std::string_view rest = digits == std::string_view::npos ? std::string_view{} : text.substr(digits);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string unit = ascii::lower(rest);
  for (const Unit& known : units)
    if (known.name == unit) return *value * known.factor;
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_size(std::string_view text) {
  const std::optional<double> bytes = with_unit(text, kSizes);
  if (!bytes || *bytes > 0x1p62) return std::nullopt;
  return std::llround(*bytes);
}

std::optional<double> parse_duration(std::string_view text) { return with_unit(text, kDurations); }

std::string show_size(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB", "TB", "PB"}) {
    value /= 1000;
    if (value < 9.95) return fmt::format("{:.1f} {}", value, unit);
    if (value < 999.5) return fmt::format("{:.0f} {}", value, unit);
  }
  return fmt::format("{:.0f} PB", value);
}

std::string show_duration(double seconds) {
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  if (seconds < 99.5 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 47.95 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86'400);
}

}  // namespace hearth::cli
