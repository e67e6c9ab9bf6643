// Parts of JSON texts: strings, numbers, constants, punctuation. Internal to text/grammar.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/grammar/expr.h"

namespace hearth::text::grammar {

// A decimal number without exponent: digits without leading zeros ("0" at least), fraction without trailing ones.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction;
  bool zero() const { return whole == "0" && fraction.empty(); }
};
Decimal decimal_of(const json::Value& number);
int compare(const Decimal& a, const Decimal& b);

struct NumberLimits {
  bool integer = false;
  std::optional<Decimal> low, high;
  bool low_excluded = false, high_excluded = false;
  int64_t multiple_of = 1;  // above 1: the number is an integer
};

// The builder's JSON parts under one choice of white space; made once each.
class JsonParts {
 public:
  JsonParts(GrammarBuilder& builder, const JsonOptions& options);

  Expr space() const { return space_; }  // behind an opening bracket, and behind each value that brackets hold
  Expr comma() const { return comma_; }
  Expr colon() const { return colon_; }
  Expr string(uint32_t min = 0, uint32_t max = GrammarBuilder::kUnbounded);  // any characters, every escape
  Expr quoted(Expr content);
  // Any number, or one within limits: then it has no exponent, and no sign at zero.
  Expr number(const NumberLimits& limits);
  Expr constant(const json::Value& value);
  Expr any();     // any value
  Expr object();  // any object
  // Keys that are none of these names, as a whole string.
  Expr other_key(const std::vector<std::string>& names, const std::vector<DfaPtr>& patterns);

  // { members in order }: each a whole "key": value; then any number of `extra` ones.
  struct Member {
    Expr expr;
    bool required;
  };
  Expr members(const std::vector<Member>& members, std::optional<Expr> extra);
  // [ heads..., rest... ] with min to max elements; the head i stands for element i.
  Expr elements(const std::vector<Expr>& heads, std::optional<Expr> rest, uint32_t min, uint32_t max);

 private:
  GrammarBuilder& b_;
  DfaPtr character_;
  Expr space_, comma_, colon_, quote_;
  std::optional<RuleId> any_, object_;
};

// A regular expression for the texts of a format; null for one that is a note. In ASCII, nothing to escape in JSON.
std::optional<std::string_view> format_regex(std::string_view format);

}  // namespace hearth::text::grammar
