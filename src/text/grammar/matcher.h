// A grammar held against tokens, one after another.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "text/grammar/automaton.h"

namespace hearth::text {

// The state of one text. Copies are cheap (a pointer and a number), go their own ways and share what the automaton has
// learned: all copies of one matcher belong to one thread. Memory is bounded for any length of text.
class GrammarMatcher {
 public:
  GrammarMatcher(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary);

  // Bit id % 64 of word id / 64 says whether accept(id) would be true; allowed has vocabulary.words() words or more,
  // those beyond are cleared. No id may be allowed: the vocabulary has no token for what must come (Constraint makes an
  // Error of it).
  void mask(std::span<uint64_t> allowed);

  // False, and nothing changes, when the token cannot stand here. An end id can in an accepting state, once.
  bool accept(int32_t id);
  bool accept_bytes(std::string_view bytes);

  bool accepting() const { return !ended_ && at_.get().accepting; }  // the text is complete as it stands
  bool finished() const { return ended_ || (at_.get().accepting && at_.get().threads.empty()); }  // and must end here
  bool ended() const { return ended_; }                                                           // by an end id

  const VocabularyIndex& vocabulary() const { return automaton_->vocabulary(); }
  std::string expected() const { return automaton_->expected(at_); }  // bytes that may come next, printable, shortened

 private:
  std::shared_ptr<grammar::Automaton> automaton_;
  grammar::Place at_;
  bool ended_ = false;
};

}  // namespace hearth::text
