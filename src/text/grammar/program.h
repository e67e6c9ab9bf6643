// The pushdown automaton that a grammar is compiled to. Internal to text/grammar.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "text/grammar/dfa.h"
#include "text/grammar/expr.h"

namespace hearth::text::grammar {

constexpr uint32_t kUnbounded = GrammarBuilder::kUnbounded;

// A regular part. Counted: min to max texts of a prefix-free automaton, with a counter instead of copies of its states.
struct Terminal {
  DfaPtr dfa;
  bool counted = false;
  uint32_t min = 1, max = 1;
  ByteSet follow = ByteSet::all();  // what can stand behind it; all bytes where that depends on the stack
};

enum class Op : uint8_t { term, call, split, loop, ret };
struct Inst {
  Op op = Op::ret;
  uint32_t a = 0;             // term: terminal; call: rule; split: first target; loop: where its body begins
  uint32_t b = 0;             // term, call, loop: what comes next; split: number of targets
  uint32_t min = 0, max = 0;  // loop
};

// Instruction 0 is `ret`: the end of every rule and loop body, and of the text when the stack is empty.
struct Program {
  std::vector<Inst> insts;
  std::vector<uint32_t> targets;
  std::vector<uint32_t> entry;  // of rules
  std::vector<Terminal> terminals;
  uint32_t start = 0;
};

// What is known of each expression before code is made. Throws as GrammarBuilder::compile does.
struct Facts {
  std::vector<uint8_t> nullable, productive, regular, structural;  // structural: better not made one automaton
  std::vector<uint32_t> size;                                      // of its NFA, saturating
};
Facts analyze(const GrammarBuilder& builder, uint32_t root, Budget& budget);

// Adds an expression without recursion to an automaton. facts.regular must hold.
void add_to_nfa(Nfa& nfa, const GrammarBuilder& builder, uint32_t root, uint32_t from, uint32_t to, Budget& budget);

std::unique_ptr<const Program> emit(GrammarBuilder& builder, uint32_t root, Budget& budget);

}  // namespace hearth::text::grammar
