// What a sampler does with a grammar: forbids ids before a draw, is told the id that was drawn.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/matcher.h"

namespace hearth::text {

struct ConstraintOptions {
  enum class Begin : uint8_t {
    at_once,    // the whole answer is constrained
    behind,     // free until `marker` was written (</think>), constrained then; the answer cannot end before
    at_marker,  // free, and may end; each time that `marker` was written (<tool_call>) the grammar's text follows
  };
  enum class Then : uint8_t {
    free,  // free text again, for at_marker also the next match
    end,   // nothing but an end id
  };
  Begin begin = Begin::at_once;
  std::string marker;         // in the answer's bytes; special tokens count as they are spelled
  Then then = Then::end;      // once a match is finished: nothing can follow it
  int64_t matches_max = 256;  // at_marker: an end id must follow the last
};

// One answer's constraint. Copies are cheap and independent, as those of GrammarMatcher: drafts advance a copy. One
// thread at a time for an object and all its copies; the token loop allocates from bounded caches alone.
class Constraint {
 public:
  // Throws Error{invalid_argument} for a marker that is empty, longer than 256 bytes or given with at_once.
  Constraint(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary, ConstraintOptions options);

  // logits [V or more] fp32: those of forbidden ids become -inf, and all beyond the vocabulary while a grammar rules.
  // Throws Error{invalid_argument} with the place when no id is allowed.
  void apply(std::span<float> logits);
  // The same as a mask; allowed has vocab.words() words or more.
  void mask(std::span<uint64_t> allowed);

  // Throws Error{invalid_argument}, and changes nothing, for an id that mask() would forbid.
  void accept(int32_t id);

  bool free() const { return phase_ == Phase::free; }  // no grammar rules now; ids may be forbidden all the same
  bool done() const { return phase_ == Phase::ended || phase_ == Phase::only_end; }  // nothing but an end can follow
  bool accepting() const;                                                            // an end id may stand here
  int64_t matches() const { return matches_; }

 private:
  enum class Phase : uint8_t { free, grammar, only_end, ended };
  struct Watch;  // where tokens complete the marker

  void free_mask(std::span<uint64_t> allowed);
  bool accept_free(int32_t id);
  bool begin_grammar(std::string_view rest);
  void settle();
  [[noreturn]] void fail_empty() const;

  std::shared_ptr<const VocabularyIndex> vocabulary_;
  ConstraintOptions options_;
  std::shared_ptr<Watch> watch_;
  GrammarMatcher fresh_, matcher_;
  Phase phase_ = Phase::free;
  size_t marker_at_ = 0;  // bytes of the marker that the free text ends with
  int64_t matches_ = 0;
  std::string tail_;  // the last bytes, for messages
  std::vector<uint64_t> bits_;
};

}  // namespace hearth::text
