#include "text/grammar/constraint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::text {

namespace {

constexpr size_t kMarkerMax = 256, kTailMax = 40;

}  // namespace

// The marker's matcher (Knuth, Morris and Pratt 1977) and, for each of its states, the ids that complete the marker
// with bytes behind it which the grammar does not begin with: they are forbidden.
struct Constraint::Watch {
  std::string marker;
  std::vector<size_t> border;                                  // [marker + 1] longest proper border of each prefix
  std::vector<int32_t> whole;                                  // ids that hold the marker whole
  std::vector<std::optional<std::vector<int32_t>>> forbidden;  // [marker], made when a state is first met

  Watch(std::string_view text, const VocabularyIndex& vocabulary) : marker(text), border(text.size() + 1, 0) {
    for (size_t n = 2; n <= marker.size(); ++n) {
      size_t k = border[n - 1];
      while (k > 0 && marker[k] != marker[n - 1]) k = border[k];
      border[n] = marker[k] == marker[n - 1] ? k + 1 : 0;
    }
    for (int32_t id = 0; id < vocabulary.vocab_size(); ++id)
      if (vocabulary.bytes(id).find(marker) != std::string_view::npos) whole.push_back(id);
    forbidden.resize(marker.size());
  }

  // Moves the state over the bytes; where the marker is complete, the number of bytes that it took.
  std::optional<size_t> run(size_t& state, std::string_view bytes) const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      while (state > 0 && marker[state] != bytes[i]) state = border[state];
      if (marker[state] == bytes[i]) ++state;
      if (state == marker.size()) {
        state = 0;
        return i + 1;
      }
    }
    return std::nullopt;
  }

  const std::vector<int32_t>& forbidden_at(size_t state, const VocabularyIndex& vocabulary,
                                           const GrammarMatcher& grammar) {
    if (forbidden[state]) return *forbidden[state];
    std::vector<int32_t> candidates = whole;
    for (size_t part = state; part > 0; part = border[part]) add_beginning(marker.substr(part), vocabulary, candidates);
    std::vector<int32_t> bad;
    for (const int32_t id : candidates) {
      size_t at = state;
      const std::optional<size_t> taken = run(at, vocabulary.bytes(id));
      GrammarMatcher trial = grammar;
      if (taken && !trial.accept_bytes(vocabulary.bytes(id).substr(*taken))) bad.push_back(id);
    }
    forbidden[state] = std::move(bad);
    return *forbidden[state];
  }

  // Usable ids that begin with these bytes; special ones with more than the marker do not exist.
  static void add_beginning(std::string_view text, const VocabularyIndex& vocabulary, std::vector<int32_t>& out) {
    const grammar::TokenTrie& trie = vocabulary.trie();
    size_t node = 0, end = trie.size();
    for (size_t depth = 0; depth < text.size();) {
      while (node < end && trie.byte[node] != static_cast<uint8_t>(text[depth])) node = trie.end[node];
      if (node >= end) return;
      if (++depth == text.size()) break;
      end = trie.end[node];
      ++node;
    }
    for (const auto& item : trie.below(node)) out.push_back(item.id);
  }
};

Constraint::Constraint(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary, ConstraintOptions options)
    : vocabulary_(vocabulary),
      options_(std::move(options)),
      fresh_(std::move(grammar), std::move(vocabulary)),
      matcher_(fresh_),
      bits_(vocabulary_->words()) {
  const bool at_once = options_.begin == ConstraintOptions::Begin::at_once;
  if (at_once != options_.marker.empty() || options_.marker.size() > kMarkerMax)
    fail(ErrorKind::invalid_argument, "a constraint's marker has {} bytes, {} is allowed", options_.marker.size(),
         at_once ? "none" : "1 to 256");
  if (at_once) {
    phase_ = Phase::grammar;
    settle();
  } else {
    watch_ = std::make_shared<Watch>(options_.marker, *vocabulary_);
  }
}

bool Constraint::accepting() const {
  switch (phase_) {
    case Phase::free: return options_.begin == ConstraintOptions::Begin::at_marker || matches_ > 0;
    case Phase::grammar: return matcher_.accepting();
    case Phase::only_end: return true;
    case Phase::ended: return false;
  }
  return false;
}

void Constraint::free_mask(std::span<uint64_t> allowed) {
  std::fill(allowed.begin(), allowed.end(), 0);
  for (int64_t id = 0; id < vocabulary_->vocab_size(); id += 64)
    allowed[static_cast<size_t>(id) / 64] =
        vocabulary_->vocab_size() - id >= 64 ? ~0ull : (1ull << (vocabulary_->vocab_size() - id)) - 1;
  const auto forbid = [&](int32_t id) { allowed[static_cast<size_t>(id) / 64] &= ~(1ull << (id % 64)); };
  if (!accepting())
    for (const int32_t id : vocabulary_->end_ids()) forbid(id);
  if (watch_)
    for (const int32_t id : watch_->forbidden_at(marker_at_, *vocabulary_, fresh_)) forbid(id);
}

void Constraint::mask(std::span<uint64_t> allowed) {
  HEARTH_CHECK(allowed.size() >= vocabulary_->words());
  switch (phase_) {
    case Phase::free: free_mask(allowed); break;
    case Phase::grammar: matcher_.mask(allowed); break;
    case Phase::only_end:
      std::fill(allowed.begin(), allowed.end(), 0);
      for (const int32_t id : vocabulary_->end_ids()) allowed[static_cast<size_t>(id) / 64] |= 1ull << (id % 64);
      break;
    case Phase::ended: std::fill(allowed.begin(), allowed.end(), 0); break;
  }
  uint64_t any = 0;
  for (const uint64_t w : allowed) any |= w;
  if (any == 0) fail_empty();
}

void Constraint::apply(std::span<float> logits) {
  const auto V = static_cast<size_t>(vocabulary_->vocab_size());
  if (logits.size() < V) fail(ErrorKind::invalid_argument, "{} logits for a vocabulary of {}", logits.size(), V);
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  mask(bits_);
  for (size_t w = 0; w < bits_.size(); ++w) {
    if (bits_[w] == ~0ull) continue;
    const size_t begin = w * 64, end = std::min(V, begin + 64);
    if (bits_[w] == 0) {
      std::fill(logits.begin() + static_cast<std::ptrdiff_t>(begin), logits.begin() + static_cast<std::ptrdiff_t>(end),
                kForbidden);
      continue;
    }
    for (uint64_t off = ~bits_[w]; off != 0; off &= off - 1) {
      const size_t id = begin + static_cast<size_t>(std::countr_zero(off));
      if (id < V) logits[id] = kForbidden;
    }
  }
  if (phase_ != Phase::free) std::fill(logits.begin() + static_cast<std::ptrdiff_t>(V), logits.end(), kForbidden);
}

// Where the grammar's text has come to its end.
void Constraint::settle() {
  if (phase_ != Phase::grammar || !matcher_.finished()) return;
  ++matches_;
  if (matcher_.ended()) phase_ = Phase::ended;
  else if (options_.then == ConstraintOptions::Then::end || matches_ >= options_.matches_max) phase_ = Phase::only_end;
  else {
    phase_ = Phase::free;
    marker_at_ = 0;
    if (options_.begin != ConstraintOptions::Begin::at_marker) watch_.reset();
  }
}

bool Constraint::begin_grammar(std::string_view rest) {
  GrammarMatcher begun = fresh_;
  if (!begun.accept_bytes(rest)) return false;
  matcher_ = std::move(begun);
  phase_ = Phase::grammar;
  return true;
}

bool Constraint::accept_free(int32_t id) {
  if (vocabulary_->is_end(id)) {
    if (!accepting()) return false;
    phase_ = Phase::ended;
    return true;
  }
  if (!watch_) return true;
  size_t state = marker_at_;
  const std::string_view bytes = vocabulary_->bytes(id);
  if (const std::optional<size_t> taken = watch_->run(state, bytes)) {
    if (!begin_grammar(bytes.substr(*taken))) return false;
  }
  marker_at_ = state;
  return true;
}

void Constraint::accept(int32_t id) {
  const std::string_view bytes = vocabulary_->bytes(id);  // throws for an id outside of the vocabulary
  bool accepted = false;
  switch (phase_) {
    case Phase::free: accepted = accept_free(id); break;
    case Phase::grammar: accepted = matcher_.accept(id); break;
    case Phase::only_end:
      accepted = vocabulary_->is_end(id);
      if (accepted) phase_ = Phase::ended;
      break;
    case Phase::ended: break;
  }
  if (!accepted)
    fail(ErrorKind::invalid_argument, "token {} \"{}\" cannot follow \"{}\"", id, printable(bytes), printable(tail_));
  tail_ += bytes.substr(bytes.size() - std::min(bytes.size(), kTailMax));
  if (tail_.size() > kTailMax) tail_.erase(0, tail_.size() - kTailMax);
  settle();
}

void Constraint::fail_empty() const {
  if (phase_ == Phase::ended) fail(ErrorKind::invalid_argument, "the answer has ended: no token can follow");
  if (phase_ == Phase::only_end)
    fail(ErrorKind::invalid_argument, "the answer is complete but the vocabulary has no end token");
  fail(ErrorKind::invalid_argument, "no token of the vocabulary can follow \"{}\": the grammar wants one of \"{}\"",
       printable(tail_), matcher_.expected());
}

}  // namespace hearth::text
