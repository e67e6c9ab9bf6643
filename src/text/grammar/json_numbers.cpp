// Numbers within bounds: an automaton that compares the digits with the bounds' as they come.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "text/grammar/json_parts.h"
#include "text/grammar/regex.h"

namespace hearth::text::grammar {

Decimal decimal_of(const json::Value& number) {
  char buffer[400];
  std::string text;
  if (number.is_int()) text = std::to_string(number.as_int("a bound"));
  else {
    const double value = number.as_double("a bound");
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
    HEARTH_CHECK(end.ec == std::errc() && std::isfinite(value), "{}", value);
    text.assign(buffer, end.ptr);
  }
  Decimal d;
  d.negative = text.starts_with('-');
  if (d.negative) text.erase(0, 1);
  const size_t point = text.find('.');
  d.whole = text.substr(0, point);
  if (point != std::string::npos) d.fraction = text.substr(point + 1);
  while (d.fraction.ends_with('0')) d.fraction.pop_back();
  if (d.zero()) d.negative = false;
  return d;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = a.whole.size() != b.whole.size() ? (a.whole.size() < b.whole.size() ? -1 : 1) : a.whole.compare(b.whole);
  if (order == 0) order = a.fraction.compare(b.fraction);
  order = order < 0 ? -1 : order > 0 ? 1 : 0;
  return a.negative ? -order : order;
}

namespace {

// A magnitude with its sign set aside: low <= m <= high, or < where excluded.
struct Range {
  std::optional<Decimal> low, high;
  bool low_excluded = false, high_excluded = false;
};

enum Phase : uint8_t { kBegin, kZero, kWhole, kPoint, kFraction };
// How the digits so far compare with those of a bound: the same number of them while that is open.
struct Key {
  uint8_t phase;
  int8_t low, high;
  uint32_t digits;  // of the whole part, up to one more than the bounds have; then of the fraction
  int64_t rest;     // of the division by multiple_of
  auto operator<=>(const Key&) const = default;
};

class Magnitudes {
 public:
  Magnitudes(const Range& range, bool integer, int64_t multiple_of)
      : r_(range), integer_(integer), multiple_(multiple_of) {
    for (const auto* d : {&r_.low, &r_.high})
      if (*d) {
        whole_max_ = std::max(whole_max_, static_cast<uint32_t>((*d)->whole.size()) + 1);
        fraction_max_ = std::max(fraction_max_, static_cast<uint32_t>((*d)->fraction.size()) + 1);
      }
  }

  Dfa make(Budget& budget) const {
    return explore(
        Key{kBegin, 0, 0, 0, 0}, [&](const Key& key, const auto& emit) { step(key, emit); },
        [&](const Key& key) { return accepts(key); }, budget);
  }

 private:
  template <class Emit>
  void step(const Key& key, const Emit& emit) const {
    if (key.phase == kZero || key.phase == kWhole) {
      if (!integer_) emit('.', '.', Key{kPoint, settle(key, r_.low, key.low), settle(key, r_.high, key.high), 0, 0});
      if (key.phase == kZero) return;
    }
    for (char c = '0'; c <= '9'; ++c) {
      Key next = key;
      if (key.phase == kPoint || key.phase == kFraction) {
        next.phase = kFraction;
        next.low = fraction(key, r_.low, key.low, c);
        next.high = fraction(key, r_.high, key.high, c);
        next.digits = std::min(key.digits + 1, fraction_max_);
        if (next.low != 0 && next.high != 0) next.digits = 0;
      } else {
        next.phase = c == '0' && key.phase == kBegin ? kZero : kWhole;
        next.low = whole(key, r_.low, key.low, c);
        next.high = whole(key, r_.high, key.high, c);
        next.digits = std::min(key.digits + 1, whole_max_);
        next.rest = (key.rest * 10 + (c - '0')) % multiple_;
      }
      emit(static_cast<uint8_t>(c), static_cast<uint8_t>(c), next);
    }
  }

  static int8_t order(char a, char b) { return a < b ? -1 : a > b ? 1 : 0; }

  // Without a bound the comparison stays as it is, decided.
  int8_t whole(const Key& key, const std::optional<Decimal>& bound, int8_t so_far, char c) const {
    if (!bound || key.digits >= bound->whole.size()) return 1;
    return so_far != 0 ? so_far : order(c, bound->whole[key.digits]);
  }
  // At the end of the whole part: the longer number is the larger one.
  int8_t settle(const Key& key, const std::optional<Decimal>& bound, int8_t so_far) const {
    if (!bound) return 1;
    if (key.digits != bound->whole.size()) return key.digits < bound->whole.size() ? -1 : 1;
    return so_far;
  }
  int8_t fraction(const Key& key, const std::optional<Decimal>& bound, int8_t so_far, char c) const {
    if (!bound || so_far != 0) return bound ? so_far : int8_t{1};
    return order(c, key.digits < bound->fraction.size() ? bound->fraction[key.digits] : '0');
  }

  bool accepts(const Key& key) const {
    if (key.phase == kBegin || key.phase == kPoint || key.rest != 0) return false;
    const auto final_order = [&](const std::optional<Decimal>& bound, int8_t so_far) {
      const bool in_whole = key.phase != kFraction;
      const int8_t at = in_whole ? settle(key, bound, so_far) : so_far;
      const size_t digits = in_whole ? 0 : key.digits;
      return at == 0 && digits < bound->fraction.size() ? int8_t{-1} : at;
    };
    if (r_.low) {
      const int8_t at = final_order(r_.low, key.low);
      if (at < 0 || (at == 0 && r_.low_excluded)) return false;
    }
    if (r_.high) {
      const int8_t at = final_order(r_.high, key.high);
      if (at > 0 || (at == 0 && r_.high_excluded)) return false;
    }
    return true;
  }

  const Range& r_;
  bool integer_;
  int64_t multiple_;
  uint32_t whole_max_ = 0, fraction_max_ = 0;
};

// JsonOptions::doubles
constexpr size_t kDigitsMax = 200;

Decimal magnitude(Decimal d) {
  d.negative = false;
  return d;
}

}  // namespace

Expr JsonParts::number(const NumberLimits& limits) {
  const bool integer = limits.integer || limits.multiple_of > 1;
  const bool bounded = limits.low || limits.high || limits.multiple_of != 1;
  if (!bounded && !doubles_)
    return regex_expr(b_, integer ? "-?(0|[1-9][0-9]*)" : "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?", {});
  if (!bounded)
    return regex_expr(
        b_, integer ? "-?(0|[1-9][0-9]{0,199})" : "-?(0|[1-9][0-9]{0,199})(\\.[0-9]{1,200})?([eE][+-]?[0-9]{1,2})?",
        {});
  if (!doubles_ || limits.multiple_of != 1) return bounded_number(limits);
  const auto spelled = [](const std::optional<Decimal>& d) {
    return d ? fmt::format("{}{}.{}", d->negative ? "-" : "", d->whole, d->fraction) : "";
  };
  const std::string key = fmt::format("number {} {} {} {} {}", integer, spelled(limits.low), limits.low_excluded,
                                      spelled(limits.high), limits.high_excluded);
  return b_.kept(key, [&] {
    NumberLimits closed = limits;
    const std::string digits(kDigitsMax, '9');
    if (!closed.high) closed.high = Decimal{.whole = digits};
    if (!closed.low) closed.low = Decimal{.negative = true, .whole = digits};
    return b_.apart(std::make_shared<const Dfa>(b_.to_dfa(bounded_number(closed), "a number")));
  });
}

Expr JsonParts::bounded_number(const NumberLimits& limits) {
  const bool integer = limits.integer || limits.multiple_of > 1;
  std::vector<Expr> signs;
  const auto add = [&](const Range& range, bool negative) {
    Dfa dfa = Magnitudes(range, integer, limits.multiple_of).make(b_.budget());
    if (dfa.states() == 0) return;
    const Expr digits = b_.automaton(std::make_shared<const Dfa>(std::move(dfa)));
    signs.push_back(negative ? b_.sequence({b_.literal("-"), digits}) : digits);
  };
  if (!limits.high || !limits.high->negative) {
    Range range{.low = {}, .high = limits.high, .high_excluded = limits.high_excluded};
    if (limits.low && !limits.low->negative) {
      range.low = limits.low;
      range.low_excluded = limits.low_excluded;
    }
    add(range, false);
  }
  if (!limits.low || limits.low->negative) {
    // -m <= high and -m >= low: bounds change their sides. Minus zero is left out.
    Range range{.low = Decimal{}, .high = {}, .low_excluded = true};
    if (limits.high && limits.high->negative) {
      range.low = magnitude(*limits.high);
      range.low_excluded = limits.high_excluded;
    }
    if (limits.low) {
      range.high = magnitude(*limits.low);
      range.high_excluded = limits.low_excluded;
    }
    add(range, true);
  }
  return b_.choice(std::move(signs));
}

}  // namespace hearth::text::grammar
