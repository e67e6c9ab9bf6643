#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "text/grammar/program.h"

namespace hearth::text::grammar {

namespace {

using Kind = GrammarBuilder::Kind;
using Node = GrammarBuilder::Node;

// A part is made one automaton while its NFA is smaller than this and the automaton no larger than twice the NFA (or
// kDfaFree); what grows beyond stays a part with its own code.
constexpr uint32_t kNfaMax = 300'000;
constexpr uint32_t kDfaFree = 2'048;

}  // namespace

void add_to_nfa(Nfa& nfa, const GrammarBuilder& builder, uint32_t root, uint32_t from, uint32_t to, Budget& budget) {
  struct Task {
    uint32_t node, from, to;
  };
  std::vector<Task> tasks{{root, from, to}};
  while (!tasks.empty()) {
    const Task t = tasks.back();
    tasks.pop_back();
    budget.spend(2);
    const Node& node = builder.nodes()[t.node];
    // Copies of one part: min of them, then optional ones or a loop whose states nothing else enters.
    const auto repeat = [&](uint32_t min, uint32_t max, const auto& add) {
      uint32_t at = t.from;
      for (uint32_t i = 0; i < min; ++i) {
        const uint32_t next = nfa.add_state();
        add(at, next);
        at = next;
      }
      if (max == kUnbounded) {
        const uint32_t loop = nfa.add_state(), end = nfa.add_state();
        nfa.jump(at, loop);
        add(loop, end);
        nfa.jump(end, loop);
        nfa.jump(loop, t.to);
        return;
      }
      for (uint32_t i = min; i < max; ++i) {
        nfa.jump(at, t.to);
        const uint32_t next = nfa.add_state();
        add(at, next);
        at = next;
      }
      nfa.jump(at, t.to);
    };
    switch (node.kind) {
      case Kind::empty: nfa.jump(t.from, t.to); break;
      case Kind::literal: {
        const std::string& text = builder.literals()[node.a];
        budget.spend(static_cast<int64_t>(text.size()));
        uint32_t at = t.from;
        for (size_t i = 0; i < text.size(); ++i) {
          const uint32_t next = i + 1 == text.size() ? t.to : nfa.add_state();
          nfa.edge(at, static_cast<uint8_t>(text[i]), static_cast<uint8_t>(text[i]), next);
          at = next;
        }
        break;
      }
      case Kind::automaton:
        budget.spend(static_cast<int64_t>(builder.automata()[node.a]->edges.size()));
        nfa.copy(*builder.automata()[node.a], t.from, t.to);
        break;
      case Kind::counted: {
        const Dfa& unit = *builder.automata()[node.a];
        budget.spend(static_cast<int64_t>(unit.edges.size() + unit.states()) *
                     (node.max == kUnbounded ? node.min + 1 : node.max));
        repeat(node.min, node.max, [&](uint32_t a, uint32_t b) { nfa.copy(unit, a, b); });
        break;
      }
      case Kind::repeat:
        budget.spend(2 * static_cast<int64_t>(node.max == kUnbounded ? node.min + 1 : node.max));
        repeat(node.min, node.max, [&](uint32_t a, uint32_t b) { tasks.push_back({node.a, a, b}); });
        break;
      case Kind::sequence: {
        uint32_t at = t.from;
        for (uint32_t i = 0; i < node.b; ++i) {
          const uint32_t next = i + 1 == node.b ? t.to : nfa.add_state();
          tasks.push_back({builder.children()[node.a + i], at, next});
          at = next;
        }
        break;
      }
      case Kind::choice:
        for (uint32_t i = 0; i < node.b; ++i) tasks.push_back({builder.children()[node.a + i], t.from, t.to});
        break;
      case Kind::rule: tasks.push_back({*builder.rules()[node.a].body, t.from, t.to}); break;
    }
  }
}

namespace {

// Which bytes can come first at each instruction, then what can stand behind each terminal; equal terminals become one.
void set_follow(Program& p, Budget& budget) {
  const size_t n = p.insts.size();
  std::vector<ByteSet> first(n);
  std::vector<uint8_t> ends(n, 0);  // may reach `ret` without a byte
  ends[0] = 1;
  const auto take = [&](uint32_t to, uint32_t from, bool end) {
    for (size_t w = 0; w < 4; ++w) first[to].words[w] |= first[from].words[w];
    if (end) ends[to] |= ends[from];
  };
  // Settles in as many passes as rules begin with one another: there is no left recursion.
  for (bool changed = true; changed;) {
    budget.spend(static_cast<int64_t>(n + p.targets.size()) / 4);
    changed = false;
    for (uint32_t i = 1; i < n; ++i) {
      const Inst& inst = p.insts[i];
      const ByteSet before = first[i];
      const uint8_t ended = ends[i];
      switch (inst.op) {
        case Op::term: {
          const Terminal& t = p.terminals[inst.a];
          const ByteSet own = t.dfa->first_bytes(0);
          for (size_t w = 0; w < 4; ++w) first[i].words[w] |= own.words[w];
          if (t.counted ? t.min == 0 : t.dfa->accept[0] != 0) take(i, inst.b, true);
          break;
        }
        case Op::call:
        case Op::loop: {
          const uint32_t body = inst.op == Op::call ? p.entry[inst.a] : inst.a;
          take(i, body, false);
          if (ends[body] || (inst.op == Op::loop && inst.min == 0)) take(i, inst.b, true);
          break;
        }
        case Op::split:
          for (uint32_t k = 0; k < inst.b; ++k) take(i, p.targets[inst.a + k], true);
          break;
        case Op::ret: break;
      }
      changed |= before != first[i] || ended != ends[i];
    }
  }
  std::map<std::tuple<const Dfa*, bool, uint32_t, uint32_t, ByteSet>, uint32_t> numbers;
  std::vector<Terminal> terminals;
  for (Inst& inst : p.insts) {
    if (inst.op != Op::term) continue;
    Terminal t = p.terminals[inst.a];
    if (!ends[inst.b]) t.follow = first[inst.b];
    const auto [found, made] = numbers.try_emplace(std::tuple(t.dfa.get(), t.counted, t.min, t.max, t.follow),
                                                   static_cast<uint32_t>(terminals.size()));
    if (made) terminals.push_back(std::move(t));
    inst.a = found->second;
  }
  p.terminals = std::move(terminals);
}

class Emitter {
 public:
  Emitter(GrammarBuilder& builder, Facts facts, Budget& budget)
      : b_(builder), f_(std::move(facts)), budget_(budget), p_(std::make_unique<Program>()) {
    p_->insts.push_back({.op = Op::ret});
    constexpr uint32_t kNone = ~0u;
    p_->entry.assign(b_.rules().size(), kNone);
  }

  std::unique_ptr<const Program> run(uint32_t root) {
    p_->start = emit(root, 0);
    for (size_t at = 0; at < called_.size(); ++at) {
      const uint32_t rule = called_[at];
      p_->entry[rule] = emit(*b_.rules()[rule].body, 0);
    }
    set_follow(*p_, budget_);
    return std::move(p_);
  }

 private:
  struct Frame {
    uint32_t node, next;
    bool opened = false;
    std::vector<std::pair<uint32_t, uint32_t>> open;  // sequence: runs of children still to do, the last one first
    std::optional<uint32_t> made;                     // sequence: code of the runs that are done
    std::vector<uint32_t> parts, targets;             // choice
    size_t part = 0;

    uint32_t current() const { return made.value_or(next); }
  };

  static uint64_t key(uint32_t node, uint32_t next) { return uint64_t{node} << 32 | next; }

  // Code for a part with `next` behind it; where it begins. One part before one continuation is made once.
  uint32_t emit(uint32_t root, uint32_t root_next) {
    std::vector<Frame> stack;
    uint32_t value = 0;
    // True when `value` is there at once, false when a frame was pushed.
    const auto enter = [&](uint32_t node, uint32_t next) {
      if (const auto found = done_.find(key(node, next)); found != done_.end()) {
        value = found->second;
        return true;
      }
      if (const std::optional<uint32_t> made = simple(node, next)) {
        value = *made;
        done_[key(node, next)] = value;
        return true;
      }
      Frame frame;
      frame.node = node;
      frame.next = next;
      stack.push_back(std::move(frame));
      return false;
    };
    if (enter(root, root_next)) return value;
    bool have = false;  // `value` answers what the top frame asked for
    while (!stack.empty()) {
      budget_.spend(4);
      const size_t top = stack.size() - 1;
      const Node node = b_.nodes()[stack[top].node];
      const std::optional<uint32_t> made = node.kind == Kind::sequence ? sequence(stack[top], node, have, value, enter)
                                           : node.kind == Kind::choice ? choice(stack[top], node, have, value, enter)
                                                                       : repeat(stack[top], node, have, value, enter);
      if (!made) {
        have = stack.size() == top + 1;  // answered at once: the same frame goes on
        continue;
      }
      value = *made;
      done_[key(stack[top].node, stack[top].next)] = value;
      stack.pop_back();
      have = true;
    }
    return value;
  }

  bool one_automaton(uint32_t node) const { return f_.regular[node] && !f_.structural[node]; }

  std::optional<uint32_t> simple(uint32_t i, uint32_t next) {
    const Node& node = b_.nodes()[i];
    if (node.kind == Kind::empty) return next;
    if (one_automaton(i))
      if (const DfaPtr dfa = automaton_of(Kind::sequence, {i})) return terminal({.dfa = dfa}, next);
    if (node.kind == Kind::automaton) return terminal({.dfa = b_.automata()[node.a]}, next);
    if (node.kind == Kind::counted)
      return terminal({.dfa = b_.automata()[node.a], .counted = true, .min = node.min, .max = node.max}, next);
    if (node.kind == Kind::rule) {
      if (!is_called_.contains(node.a)) {
        is_called_[node.a] = true;
        called_.push_back(node.a);
      }
      return add({.op = Op::call, .a = node.a, .b = next});
    }
    return std::nullopt;
  }

  template <class Enter>
  std::optional<uint32_t> sequence(Frame& f, const Node& node, bool have, uint32_t value, const Enter& enter) {
    if (!f.opened) {
      f.opened = true;
      for (uint32_t i = 0; i < node.b;) {
        uint32_t end = i + 1;
        if (one_automaton(child(node, i)))
          while (end < node.b && one_automaton(child(node, end))) ++end;
        f.open.push_back({i, end});
        i = end;
      }
    } else if (have) f.made = value;
    while (!f.open.empty()) {
      const auto [begin, end] = f.open.back();
      f.open.pop_back();
      if (end - begin == 1) {
        enter(child(node, begin), f.current());
        return std::nullopt;
      }
      std::vector<uint32_t> run;
      for (uint32_t i = begin; i < end; ++i) run.push_back(child(node, i));
      if (const DfaPtr dfa = automaton_of(Kind::sequence, run)) f.made = terminal({.dfa = dfa}, f.current());
      else
        for (uint32_t i = begin; i < end; ++i) f.open.push_back({i, i + 1});
    }
    return f.current();
  }

  template <class Enter>
  std::optional<uint32_t> choice(Frame& f, const Node& node, bool have, uint32_t value, const Enter& enter) {
    if (!f.opened) {
      f.opened = true;
      std::vector<uint32_t> together;
      for (uint32_t i = 0; i < node.b; ++i) {
        const uint32_t c = child(node, i);
        if (!f_.productive[c]) continue;
        (one_automaton(c) ? together : f.parts).push_back(c);
      }
      if (together.size() > 1) {
        if (const DfaPtr dfa = automaton_of(Kind::choice, together)) {
          f.targets.push_back(terminal({.dfa = dfa}, f.next));
          together.clear();
        }
      }
      f.parts.insert(f.parts.end(), together.begin(), together.end());
    } else if (have) f.targets.push_back(value);
    if (f.part < f.parts.size()) {
      enter(f.parts[f.part++], f.next);
      return std::nullopt;
    }
    return split(f.targets);
  }

  template <class Enter>
  std::optional<uint32_t> repeat(Frame& f, const Node& node, bool have, uint32_t value, const Enter& enter) {
    if (node.min == 0 && !f_.productive[node.a]) return f.next;
    const bool once = node.max == 1;
    if (!f.opened) {
      f.opened = true;
      enter(node.a, once ? f.next : 0);
      return std::nullopt;
    }
    HEARTH_CHECK(have);
    if (once) return node.min == 1 ? value : split({value, f.next});
    return add({.op = Op::loop, .a = value, .b = f.next, .min = node.min, .max = node.max});
  }

  uint32_t child(const Node& node, uint32_t i) const { return b_.children()[node.a + i]; }

  uint32_t add(const Inst& inst) {
    budget_.spend(16);
    p_->insts.push_back(inst);
    return static_cast<uint32_t>(p_->insts.size() - 1);
  }

  uint32_t split(std::vector<uint32_t> targets) {
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    if (targets.size() == 1) return targets[0];
    const auto first = static_cast<uint32_t>(p_->targets.size());
    budget_.spend(static_cast<int64_t>(targets.size()));
    p_->targets.insert(p_->targets.end(), targets.begin(), targets.end());
    return add({.op = Op::split, .a = first, .b = static_cast<uint32_t>(targets.size())});
  }

  uint32_t terminal(Terminal t, uint32_t next) {
    if (!t.counted && t.dfa->accept[0] && !t.dfa->has_edges(0)) return next;  // the empty text alone
    p_->terminals.push_back(std::move(t));
    return add({.op = Op::term, .a = static_cast<uint32_t>(p_->terminals.size() - 1), .b = next});
  }

  // The automaton of these parts one behind another, or of one of them; null when it would be too large.
  DfaPtr automaton_of(Kind kind, const std::vector<uint32_t>& parts) {
    const auto [found, made] = automata_.try_emplace({kind, parts}, nullptr);
    if (!made) return found->second;
    if (parts.size() == 1 && b_.nodes()[parts[0]].kind == Kind::automaton)
      return found->second = b_.automata()[b_.nodes()[parts[0]].a];
    uint64_t size = 0;
    for (const uint32_t part : parts) size += f_.size[part];
    if (size > kNfaMax) return nullptr;
    Nfa nfa;
    const uint32_t start = nfa.add_state(), accept = nfa.add_state();
    uint32_t at = start;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool choice = kind == Kind::choice;
      const uint32_t to = choice || i + 1 == parts.size() ? accept : nfa.add_state();
      add_to_nfa(nfa, b_, parts[i], choice ? start : at, to, budget_);
      at = to;
    }
    std::optional<Dfa> dfa =
        nfa.determinize(start, accept, std::max(kDfaFree, static_cast<uint32_t>(2 * size)), budget_);
    if (dfa) found->second = std::make_shared<const Dfa>(std::move(*dfa));
    return found->second;
  }

  GrammarBuilder& b_;
  const Facts f_;
  Budget& budget_;
  std::unique_ptr<Program> p_;
  std::unordered_map<uint64_t, uint32_t> done_;
  std::map<std::pair<Kind, std::vector<uint32_t>>, DfaPtr> automata_;
  std::map<uint32_t, bool> is_called_;
  std::vector<uint32_t> called_;
};

}  // namespace

std::unique_ptr<const Program> emit(GrammarBuilder& builder, uint32_t root, Budget& budget) {
  Facts facts = analyze(builder, root, budget);
  return Emitter(builder, std::move(facts), budget).run(root);
}

}  // namespace hearth::text::grammar
