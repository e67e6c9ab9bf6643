#include <algorithm>

#include "base/limit_error.h"
#include "text/grammar/program.h"

namespace hearth::text::grammar {

namespace {

using Kind = GrammarBuilder::Kind;
using Node = GrammarBuilder::Node;

constexpr uint32_t kSizeMax = 1u << 30;
constexpr int kPassesMax = 200;

uint32_t plus(uint32_t a, uint32_t b) { return std::min(kSizeMax, a + b); }
uint32_t times(uint32_t a, uint32_t n) { return static_cast<uint32_t>(std::min<uint64_t>(kSizeMax, uint64_t{a} * n)); }

class Analysis {
 public:
  Analysis(const GrammarBuilder& builder, Budget& budget) : b_(builder), budget_(budget) {
    const size_t n = b_.nodes().size();
    for (auto* flags : {&f_.nullable, &f_.productive, &f_.regular, &f_.structural}) flags->assign(n, 0);
    f_.size.assign(n, 0);
  }

  // Least fixed points: nothing is nullable, productive or free of recursion unless it must be. Rules point anywhere,
  // so passes go in both directions; each settles a chain that lies its way.
  Facts run() {
    for (const auto& rule : b_.rules())
      if (!rule.body) fail(ErrorKind::invalid_argument, "rule \"{}\" is not defined", rule.name);
    check_left();
    const auto n = static_cast<uint32_t>(b_.nodes().size());
    for (int pass = 0;; ++pass) {
      if (pass == kPassesMax)
        fail(ErrorKind::invalid_argument, "the grammar's rules depend on each other more than {} deep", kPassesMax);
      budget_.spend(static_cast<int64_t>(b_.children().size() + n) / 8);
      bool changed = false;
      for (uint32_t i = 0; i < n; ++i) changed |= update(pass % 2 ? n - 1 - i : i);
      if (!changed) break;
    }
    return std::move(f_);
  }

 private:
  bool set(std::vector<uint8_t>& flags, uint32_t i, bool value) {
    if (!value || flags[i]) return false;
    return flags[i] = 1, true;
  }

  bool update(uint32_t i) {
    if (f_.nullable[i] && f_.productive[i] && f_.regular[i]) return false;
    const Node& node = b_.nodes()[i];
    switch (node.kind) {
      case Kind::empty: return leaf(i, true, true, 1);
      case Kind::literal: return leaf(i, false, true, static_cast<uint32_t>(b_.literals()[node.a].size()));
      case Kind::automaton: {
        const Dfa& dfa = *b_.automata()[node.a];
        f_.structural[i] = node.min != 0;
        return leaf(i, dfa.states() > 0 && dfa.accept[0], dfa.states() > 0, dfa.states());
      }
      case Kind::counted: {
        const Dfa& dfa = *b_.automata()[node.a];
        f_.structural[i] = 1;
        return leaf(i, node.min == 0, true, times(dfa.states(), node.max == kUnbounded ? node.min + 1 : node.max));
      }
      case Kind::repeat: {
        bool changed = set(f_.nullable, i, node.min == 0 || f_.nullable[node.a]);
        changed |= set(f_.productive, i, node.min == 0 || f_.productive[node.a]);
        if (f_.regular[node.a] && !f_.regular[i]) {
          f_.size[i] = times(f_.size[node.a] + 1, node.max == kUnbounded ? node.min + 1 : node.max);
          f_.structural[i] = f_.structural[node.a];
        }
        return changed | set(f_.regular, i, f_.regular[node.a]);
      }
      case Kind::rule: {
        const uint32_t body = *b_.rules()[node.a].body;
        bool changed = set(f_.nullable, i, f_.nullable[body]);
        changed |= set(f_.productive, i, f_.productive[body]);
        f_.size[i] = f_.size[body];
        f_.structural[i] = f_.structural[body];
        return changed | set(f_.regular, i, f_.regular[body]);
      }
      case Kind::sequence:
      case Kind::choice: return list(i, node);
    }
    return false;
  }

  bool leaf(uint32_t i, bool nullable, bool productive, uint32_t size) {
    bool changed = set(f_.nullable, i, nullable);
    changed |= set(f_.productive, i, productive);
    changed |= set(f_.regular, i, true);
    f_.size[i] = std::max(1u, size);
    return changed;
  }

  bool list(uint32_t i, const Node& node) {
    bool all_nullable = true, any_nullable = false, all_productive = true, any_productive = false, all_regular = true;
    bool structural = false;
    uint32_t size = 1;
    for (uint32_t k = 0; k < node.b; ++k) {
      const uint32_t c = b_.children()[node.a + k];
      all_nullable &= f_.nullable[c] != 0;
      any_nullable |= f_.nullable[c] != 0;
      all_productive &= f_.productive[c] != 0;
      any_productive |= f_.productive[c] != 0;
      all_regular &= f_.regular[c] != 0;
      structural |= f_.structural[c] != 0;
      size = plus(size, f_.size[c]);
    }
    const bool choice = node.kind == Kind::choice;
    bool changed = set(f_.nullable, i, choice ? any_nullable : all_nullable);
    changed |= set(f_.productive, i, choice ? any_productive : all_productive);
    f_.size[i] = size;
    f_.structural[i] = structural;
    return changed | set(f_.regular, i, all_regular);
  }

  // Parts that can stand at the very beginning of a part. Conservative before nullable is known, so that is found
  // first.
  void check_left() {
    nullable_only();
    const auto n = static_cast<uint32_t>(b_.nodes().size());
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> color(n, kNew);
    std::vector<uint32_t> depth(n, 0);
    struct Frame {
      uint32_t node, child;
    };
    std::vector<Frame> stack;
    for (uint32_t root = 0; root < n; ++root) {
      if (color[root] != kNew) continue;
      stack.push_back({root, 0});
      color[root] = kOpen;
      while (!stack.empty()) {
        Frame& at = stack.back();
        const std::optional<uint32_t> child = left_child(at.node, at.child);
        if (!child) {
          const Node& node = b_.nodes()[at.node];
          if (node.kind == Kind::rule && ++depth[at.node] > static_cast<uint32_t>(b_.limits().depth))
            fail_limit(kGrammarDepth, "rule \"{}\" begins with rules that begin with rules more than {} deep",
                       b_.rules()[node.a].name, b_.limits().depth);
          color[at.node] = kDone;
          const uint32_t below = depth[at.node];
          stack.pop_back();
          if (!stack.empty()) depth[stack.back().node] = std::max(depth[stack.back().node], below);
          continue;
        }
        ++at.child;
        const uint32_t parent = at.node;
        if (color[*child] == kOpen) fail_left(stack, *child);
        if (color[*child] == kDone) depth[parent] = std::max(depth[parent], depth[*child]);
        else {
          color[*child] = kOpen;
          stack.push_back({*child, 0});
        }
      }
    }
  }

  std::optional<uint32_t> left_child(uint32_t i, uint32_t k) const {
    const Node& node = b_.nodes()[i];
    if (node.kind == Kind::repeat) return k == 0 ? std::optional(node.a) : std::nullopt;
    if (node.kind == Kind::rule) return k == 0 ? b_.rules()[node.a].body : std::nullopt;
    if ((node.kind != Kind::sequence && node.kind != Kind::choice) || k >= node.b) return std::nullopt;
    const uint32_t* children = &b_.children()[node.a];
    if (node.kind == Kind::sequence && k > 0 && !f_.nullable[children[k - 1]]) return std::nullopt;
    return children[k];
  }

  template <class Stack>
  [[noreturn]] void fail_left(const Stack& stack, uint32_t from) const {
    std::string name = "?";
    for (size_t i = stack.size(); i-- > 0;) {
      const Node& node = b_.nodes()[stack[i].node];
      if (node.kind == Kind::rule) name = b_.rules()[node.a].name;
      if (stack[i].node == from) break;
    }
    fail(ErrorKind::invalid_argument, "rule \"{}\" can begin with itself: left recursion is not supported", name);
  }

  void nullable_only() {
    const auto n = static_cast<uint32_t>(b_.nodes().size());
    for (int pass = 0; pass < kPassesMax; ++pass) {
      budget_.spend(static_cast<int64_t>(b_.children().size() + n) / 8);
      bool changed = false;
      for (uint32_t k = 0; k < n; ++k) {
        const uint32_t i = pass % 2 ? n - 1 - k : k;
        if (f_.nullable[i]) continue;
        const Node& node = b_.nodes()[i];
        bool is = false;
        switch (node.kind) {
          case Kind::empty: is = true; break;
          case Kind::literal: break;
          case Kind::automaton: is = b_.automata()[node.a]->states() > 0 && b_.automata()[node.a]->accept[0]; break;
          case Kind::counted: is = node.min == 0; break;
          case Kind::repeat: is = node.min == 0 || f_.nullable[node.a]; break;
          case Kind::rule: is = f_.nullable[*b_.rules()[node.a].body]; break;
          case Kind::sequence:
            is = true;
            for (uint32_t c = 0; c < node.b; ++c) is = is && f_.nullable[b_.children()[node.a + c]];
            break;
          case Kind::choice:
            for (uint32_t c = 0; c < node.b; ++c) is = is || f_.nullable[b_.children()[node.a + c]];
            break;
        }
        changed |= set(f_.nullable, i, is);
      }
      if (!changed) return;
    }
    fail(ErrorKind::invalid_argument, "the grammar's rules depend on each other more than {} deep", kPassesMax);
  }

  const GrammarBuilder& b_;
  Budget& budget_;
  Facts f_;
};

}  // namespace

Facts analyze(const GrammarBuilder& builder, uint32_t root, Budget& budget) {
  Facts facts = Analysis(builder, budget).run();
  if (!facts.productive[root])
    fail(ErrorKind::invalid_argument, "the grammar accepts no text: its rules never come to an end");
  return facts;
}

}  // namespace hearth::text::grammar
