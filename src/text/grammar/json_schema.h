// JSON Schema to grammar parts. Internal to text/grammar; what is supported stands at compile_json_schema in grammar.h.
//
// A value's schema is a set of parts that must all hold: a schema, what `allOf` and `$ref` bring in, the branch of an
// `anyOf` that was chosen. Each set met becomes a rule once, so that recursion in schemas is recursion of rules and
// nothing here recurses.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/json_parts.h"

namespace hearth::text::grammar {

// A schema, perhaps less its anyOf or oneOf where a branch of it is another part, and less $ref and allOf where what
// they bring in are other parts.
struct SchemaPart {
  const json::Value* schema;
  bool any_of_done = false, one_of_done = false, expanded = false;
  auto operator<=>(const SchemaPart&) const = default;
};
using SchemaParts = std::vector<SchemaPart>;

// The types of JSON as bits.
enum JsonType : uint8_t { kNull = 1, kBoolean = 2, kInteger = 4, kNumber = 8, kString = 16, kArray = 32, kObject = 64 };
constexpr uint8_t kAllTypes = 127;

// Reads keywords of a set of parts. All throw Error{invalid_argument} with keyword and path.
class SchemaReader {
 public:
  SchemaReader(const json::Value& root, GrammarBuilder& builder);

  // The set with `$ref` and `allOf` followed, known keywords alone, `true` dropped; null when a part is `false`.
  std::optional<SchemaParts> flattened(const SchemaParts& parts, const std::string& path);

  // Where a schema that is a reference and nothing else leads.
  const json::Value* target(const json::Value* schema, const std::string& path) const;

  uint8_t types(const SchemaParts& parts, const std::string& path) const;
  NumberLimits number_limits(const SchemaParts& parts, const std::string& path) const;
  struct Counts {
    uint32_t min = 0, max = GrammarBuilder::kUnbounded;
    bool bounded() const { return min > 0 || max != GrammarBuilder::kUnbounded; }
  };
  Counts counts(const SchemaParts& parts, std::string_view low, std::string_view high, const std::string& path) const;
  // The first enum or const; null without one.
  std::optional<std::vector<const json::Value*>> listed(const SchemaParts& parts, const std::string& path) const;
  // Whether the other keywords of the parts let a value through.
  bool admits(const SchemaParts& parts, const json::Value& value, const std::string& path);
  bool provably_disjoint(const SchemaParts& a, const SchemaParts& b, const std::string& path, int depth);

  // The sets that the anyOf or oneOf of parts[part] stands for; those of oneOf are disjoint.
  std::vector<SchemaParts> branches(const SchemaParts& parts, size_t part, bool one_of, const std::string& path);
  // What `pattern` and `format` say of a string, and the texts that satisfy it within bounds of length.
  std::vector<Expr> contents(const SchemaParts& parts, Encoding encoding, const std::string& path);
  Dfa bounded(const std::vector<Expr>& contents, const Counts& length, Encoding encoding, const std::string& path);

  const json::Array& array(const json::Value& value, const std::string& path) const;
  const json::Object& object(const json::Value& value, const std::string& path) const;
  const std::string& string(const json::Value& value, const std::string& path) const;
  std::set<std::string> required(const SchemaParts& parts, const std::string& path) const;
  std::vector<std::string> names(const SchemaParts& parts, const std::string& path) const;  // of known members
  // What holds for a member of this name, or for one of unknown name (null); and for an element beyond `index` heads.
  SchemaParts member(const SchemaParts& parts, const std::string* name, const std::string& path);
  SchemaParts element(const SchemaParts& parts, size_t index, const std::string& path) const;
  static const json::Array* heads(const SchemaPart& part);
  const Dfa& pattern(const std::string& regex, const std::string& path);  // raw text, found anywhere

 private:
  const json::Value& resolve(const std::string& reference, const std::string& path) const;
  void check_keywords(const json::Object& schema, const std::string& path) const;
  void measure() const;

  const json::Value& root_;
  GrammarBuilder& b_;
  std::map<std::string, Dfa> patterns_;
};

class SchemaCompiler {
 public:
  SchemaCompiler(const json::Value& root, GrammarBuilder& builder, const JsonOptions& options,
                 JsonNotation notation = {})
      : b_(builder), reader_(root, builder), parts_(builder, options, std::move(notation)) {}
  Expr compile(const json::Value& schema);

  // Values one by one: finish() once the last is made.
  Expr value(SchemaParts parts, const std::string& path);
  void finish();
  JsonParts& parts() { return parts_; }

 private:
  struct Pending {
    RuleId rule;
    SchemaParts parts;
    std::string path;
  };

  Expr body(const SchemaParts& given, const std::string& path);
  Expr branches(const SchemaParts& parts, size_t part, bool one_of, const std::string& path);
  Expr listed(const SchemaParts& parts, const std::vector<const json::Value*>& values, const std::string& path);
  Expr string(const SchemaParts& parts, const std::string& path);
  Expr array(const SchemaParts& parts, const std::string& path);
  Expr object(const SchemaParts& parts, const std::string& path);
  Expr nothing() { return b_.choice({}); }

  GrammarBuilder& b_;
  SchemaReader reader_;
  JsonParts parts_;
  std::map<SchemaParts, RuleId> rules_;
  std::deque<Pending> pending_;
};

}  // namespace hearth::text::grammar
