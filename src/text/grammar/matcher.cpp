#include "text/grammar/matcher.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::text {

GrammarMatcher::GrammarMatcher(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary)
    : automaton_(std::make_shared<grammar::Automaton>(std::move(grammar), std::move(vocabulary))),
      at_(automaton_->start()) {}

void GrammarMatcher::mask(std::span<uint64_t> allowed) {
  HEARTH_CHECK(allowed.size() >= vocabulary().words());
  std::fill(allowed.begin(), allowed.end(), 0);
  if (ended_) return;
  const std::span<const uint64_t> bits = automaton_->mask(at_);
  std::copy(bits.begin(), bits.end(), allowed.begin());
  if (accepting())
    for (const int32_t id : vocabulary().end_ids()) allowed[static_cast<size_t>(id) / 64] |= 1ull << (id % 64);
}

bool GrammarMatcher::accept(int32_t id) {
  if (ended_) return false;
  if (vocabulary().is_end(id)) {
    ended_ = accepting();
    return ended_;
  }
  return vocabulary().usable(id) && automaton_->step(at_, vocabulary().bytes(id));
}

bool GrammarMatcher::accept_bytes(std::string_view bytes) { return !ended_ && automaton_->step(at_, bytes); }

}  // namespace hearth::text
