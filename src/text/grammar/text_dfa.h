// Automata of texts around a mark: what stands between the tags and marks of a tool-call dialect. Internal to
// text/grammar.
#pragma once
#include <string_view>

#include "text/grammar/dfa.h"

namespace hearth::text::grammar {

// Any bytes that do not hold the mark.
Dfa without_text(std::string_view mark, Budget& budget);
// Any bytes up to and with the first mark.
Dfa up_to_text(std::string_view mark, Budget& budget);

// Texts of an automaton that no shorter one of them begins.
Dfa first_match(const Dfa& dfa);

}  // namespace hearth::text::grammar
