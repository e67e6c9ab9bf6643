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

// Where strings and names are not written as JSON has them, or stand inside other markup.
struct JsonNotation {
  enum class Strings : uint8_t {
    json,
    marked,  // as they are, between two marks; names are bare where they can be
  };
  Strings strings = Strings::json;
  std::string mark;   // the mark; with Strings::json: bytes that no string may hold, they would end the value
  std::string never;  // Strings::json: characters that a string holds as escapes alone
};

// Strings of bounded length beside a mark are made of states: at most so many characters.
constexpr uint32_t kMarkedLengthMax = 1'024;

// The builder's JSON parts under one choice of white space and notation; made once each.
class JsonParts {
 public:
  JsonParts(GrammarBuilder& builder, const JsonOptions& options, JsonNotation notation = {});

  Expr space() const { return space_; }  // behind an opening bracket, and behind each value that brackets hold
  Expr comma() const { return comma_; }
  Expr colon() const { return colon_; }
  Expr string(uint32_t min = 0, uint32_t max = GrammarBuilder::kUnbounded);  // any characters, every escape
  // A string of this content, spelled in encoding(); `what` names it in errors.
  Expr quoted(Expr content, std::string_view what);
  Encoding encoding() const;
  std::string text(const std::string& string) const;  // this string
  std::string name(const std::string& name) const;    // this name of a member
  // Any number, or one within limits: then it has no exponent, and no sign at zero.
  Expr number(const NumberLimits& limits);
  Expr constant(const json::Value& value);
  Expr any();     // any value
  Expr object();  // any object
  // Names spelled in encoding(), as whole strings; less those that the notation has no way for.
  Expr key(DfaPtr names);
  // Names that are none of these, as whole strings.
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
  bool marked() const { return notation_.strings == JsonNotation::Strings::marked; }
  Expr marked_string(uint32_t min, uint32_t max);
  Expr bounded_number(const NumberLimits& limits);
  Expr enclosed(Expr content);
  Dfa bare_names();

  GrammarBuilder& b_;
  const JsonNotation notation_;
  const bool doubles_;
  const std::string same_parts_;  // of the builder's kept parts
  DfaPtr character_;
  Expr space_, comma_, colon_, quote_;
  std::optional<RuleId> any_, object_;
};

// A regular expression for the texts of a format; null for one that is a note. In ASCII, nothing to escape in JSON.
std::optional<std::string_view> format_regex(std::string_view format);

}  // namespace hearth::text::grammar
