#include "text/grammar/expr.h"

#include <algorithm>

#include "base/limit_error.h"
#include "text/grammar/program.h"

namespace hearth::text {

using namespace grammar;

namespace {

constexpr size_t kNodesMax = 1'000'000;
constexpr uint32_t kRepeatMax = 1'000'000'000;
// Up to so many copies a character's automaton is repeated in states, beyond with a counter.
constexpr uint32_t kCopiesMax = 4;

}  // namespace

GrammarBuilder::GrammarBuilder(const GrammarLimits& limits) : limits_(limits), budget_(limits.work) {}

Expr GrammarBuilder::add(const Node& node) {
  budget_.spend(8);
  if (nodes_.size() >= kNodesMax) fail(ErrorKind::invalid_argument, "the grammar is too large: {} parts", kNodesMax);
  nodes_.push_back(node);
  return {static_cast<uint32_t>(nodes_.size() - 1)};
}

Expr GrammarBuilder::add_list(Kind kind, const std::vector<Expr>& parts) {
  budget_.spend(static_cast<int64_t>(parts.size()));
  const auto first = static_cast<uint32_t>(children_.size());
  for (const Expr e : parts) {
    HEARTH_CHECK(e.index < nodes_.size(), "an expression of another builder");
    children_.push_back(e.index);
  }
  return add({.kind = kind, .a = first, .b = static_cast<uint32_t>(parts.size())});
}

Expr GrammarBuilder::empty() { return add({}); }

Expr GrammarBuilder::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  if (bytes.size() > limits_.bytes)
    fail_limit(kGrammarBytes, "a text of {} bytes, the limit is {}", bytes.size(), limits_.bytes);
  budget_.spend(static_cast<int64_t>(bytes.size()) / 4);
  literals_.emplace_back(bytes);
  return add({.kind = Kind::literal, .a = static_cast<uint32_t>(literals_.size() - 1)});
}

Expr GrammarBuilder::automaton(DfaPtr dfa) {
  automata_.push_back(std::move(dfa));
  return add({.kind = Kind::automaton, .a = static_cast<uint32_t>(automata_.size() - 1)});
}

Expr GrammarBuilder::apart(DfaPtr dfa) {
  automata_.push_back(std::move(dfa));
  return add({.kind = Kind::automaton, .a = static_cast<uint32_t>(automata_.size() - 1), .min = 1});
}

Expr GrammarBuilder::bytes(const ByteSet& set) { return automaton(std::make_shared<const Dfa>(bytes_dfa(set))); }

Expr GrammarBuilder::points(const Points& set, Encoding encoding) {
  const auto [found, made] = points_.try_emplace({set, encoding}, 0);
  if (made) {
    automata_.push_back(std::make_shared<const Dfa>(points_dfa(set, encoding, budget_)));
    found->second = static_cast<uint32_t>(automata_.size() - 1);
  }
  return add({.kind = Kind::automaton, .a = found->second});
}

Expr GrammarBuilder::sequence(std::vector<Expr> parts) {
  // Short sequences inside become part of this one, so that neighbouring texts can meet.
  std::vector<Expr> flat;
  for (const Expr e : parts) {
    const Node& node = nodes_[e.index];
    if (node.kind == Kind::empty) continue;
    if (node.kind == Kind::sequence && node.b <= 8)
      for (uint32_t i = 0; i < node.b; ++i) flat.push_back({children_[node.a + i]});
    else flat.push_back(e);
  }
  if (flat.empty()) return empty();
  if (flat.size() == 1) return flat[0];
  return add_list(Kind::sequence, flat);
}

Expr GrammarBuilder::choice(std::vector<Expr> parts) {
  if (parts.size() == 1) return parts[0];
  return add_list(Kind::choice, parts);
}

Expr GrammarBuilder::counted(DfaPtr unit, uint32_t min, uint32_t max) {
  HEARTH_CHECK(unit->prefix_free());
  automata_.push_back(std::move(unit));
  return add({.kind = Kind::counted, .a = static_cast<uint32_t>(automata_.size() - 1), .min = min, .max = max});
}

Expr GrammarBuilder::repeat(Expr part, uint32_t min, uint32_t max) {
  if (max < min) fail(ErrorKind::invalid_argument, "a repeat of at least {} and at most {}", min, max);
  if (min > kRepeatMax || (max != kUnbounded && max > kRepeatMax))
    fail(ErrorKind::invalid_argument, "a repeat of {} times, the limit is {}", max == kUnbounded ? min : max,
         kRepeatMax);
  if (max == 0) return empty();
  if (min == 1 && max == 1) return part;
  const bool many = (max == kUnbounded ? min : max) > kCopiesMax;
  const Node node = nodes_[part.index];
  if (many && node.kind == Kind::literal)
    return counted(std::make_shared<const Dfa>(literal_dfa(literals_[node.a])), min, max);
  if (many && node.kind == Kind::automaton && automata_[node.a]->prefix_free())
    return counted(automata_[node.a], min, max);
  return add({.kind = Kind::repeat, .a = part.index, .min = min, .max = max});
}

std::optional<GrammarBuilder::Counted> GrammarBuilder::as_counted(Expr e) const {
  const Node& node = nodes_[e.index];
  if (node.kind == Kind::counted) return Counted{automata_[node.a], node.min, node.max};
  if (node.kind == Kind::automaton && automata_[node.a]->prefix_free()) return Counted{automata_[node.a], 1, 1};
  if (node.kind != Kind::repeat) return std::nullopt;
  const Node& child = nodes_[node.a];
  if (child.kind != Kind::automaton || !automata_[child.a]->prefix_free()) return std::nullopt;
  return Counted{automata_[child.a], node.min, node.max};
}

RuleId GrammarBuilder::rule(std::string name) {
  budget_.spend(16);
  rules_.push_back({std::move(name), std::nullopt});
  return {static_cast<uint32_t>(rules_.size() - 1)};
}

void GrammarBuilder::define(RuleId rule, Expr body) {
  HEARTH_CHECK(!rules_[rule.index].body, "rule {} is defined twice", rules_[rule.index].name);
  rules_[rule.index].body = body.index;
}

Expr GrammarBuilder::call(RuleId rule) { return add({.kind = Kind::rule, .a = rule.index}); }

Expr GrammarBuilder::kept(const std::string& key, const std::function<Expr()>& make) {
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  const Expr made = make();
  kept_.emplace(key, made);
  return made;
}

Dfa GrammarBuilder::to_dfa(Expr e, std::string_view what) {
  Nfa nfa;
  const uint32_t start = nfa.add_state(), accept = nfa.add_state();
  add_to_nfa(nfa, *this, e.index, start, accept, budget_);
  std::optional<Dfa> dfa = nfa.determinize(start, accept, 100'000, budget_);
  if (!dfa) fail(ErrorKind::invalid_argument, "{} is too large: more than 100000 states", what);
  return std::move(*dfa);
}

GrammarPtr GrammarBuilder::compile(Expr root) {
  return std::make_shared<const Grammar>(emit(*this, root.index, budget_));
}

Grammar::Grammar(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Grammar::~Grammar() = default;

GrammarPtr compile_choice(std::span<const std::string> texts, const GrammarLimits& limits) {
  if (texts.empty()) fail(ErrorKind::invalid_argument, "a choice of no texts");
  size_t size = 0;
  GrammarBuilder b(limits);
  std::vector<Expr> parts;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) fail(ErrorKind::invalid_argument, "text {} of the choice is empty", i + 1);
    size += texts[i].size();
    parts.push_back(b.literal(texts[i]));
  }
  if (size > limits.bytes) fail_limit(kGrammarBytes, "a choice of {} bytes, the limit is {}", size, limits.bytes);
  return b.compile(b.choice(std::move(parts)));
}

GrammarPtr compile_json_schema(const json::Value& schema, const JsonOptions& options, const GrammarLimits& limits) {
  GrammarBuilder b(limits);
  return b.compile(b.json_schema(schema, options));
}

GrammarPtr compile_json_object(const JsonOptions& options, const GrammarLimits& limits) {
  GrammarBuilder b(limits);
  return b.compile(b.json_object(options));
}

GrammarPtr compile_regex(std::string_view pattern, const GrammarLimits& limits) {
  GrammarBuilder b(limits);
  return b.compile(b.regex(pattern));
}

GrammarPtr with_leading_space(const GrammarPtr& grammar) {
  auto program = std::make_unique<Program>(grammar->program());
  ByteSet space;
  for (const char c : std::string_view(" \t\r\n")) space.add(static_cast<uint8_t>(c));
  program->terminals.push_back(
      {.dfa = std::make_shared<const Dfa>(bytes_dfa(space)), .counted = true, .min = 0, .max = 32});
  program->insts.push_back(
      {.op = Op::term, .a = static_cast<uint32_t>(program->terminals.size() - 1), .b = program->start});
  program->start = static_cast<uint32_t>(program->insts.size() - 1);
  return std::make_shared<const Grammar>(std::move(program));
}

}  // namespace hearth::text
