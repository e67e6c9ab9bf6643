#include "text/grammar/text_dfa.h"

#include <vector>

#include "base/error.h"

namespace hearth::text::grammar {

namespace {

// States are the bytes of the mark that the text ends with (Knuth, Morris and Pratt 1977).
Dfa search(std::string_view mark, bool wanted, Budget& budget) {
  HEARTH_CHECK(!mark.empty());
  const size_t n = mark.size();
  std::vector<std::array<size_t, 256>> next(n);
  size_t border = 0;
  for (size_t k = 0; k < n; ++k) {
    for (size_t b = 0; b < 256; ++b) next[k][b] = k == 0 ? 0 : next[border][b];
    next[k][static_cast<uint8_t>(mark[k])] = k + 1;
    if (k > 0) border = next[border][static_cast<uint8_t>(mark[k])];
  }
  const auto step = [&](size_t at, const auto& emit) {
    if (at == n) return;
    for (size_t lo = 0; lo < 256;) {
      const size_t to = next[at][lo];
      size_t hi = lo;
      while (hi + 1 < 256 && next[at][hi + 1] == to) ++hi;
      if (wanted || to != n) emit(static_cast<uint8_t>(lo), static_cast<uint8_t>(hi), to);
      lo = hi + 1;
    }
  };
  return explore(size_t{0}, step, [&](size_t at) { return wanted == (at == n); }, budget);
}

}  // namespace

Dfa without_text(std::string_view mark, Budget& budget) { return search(mark, false, budget); }
Dfa up_to_text(std::string_view mark, Budget& budget) { return search(mark, true, budget); }

Dfa first_match(const Dfa& dfa) {
  std::vector<std::vector<Dfa::Edge>> out(dfa.states());
  for (uint32_t s = 0; s < dfa.states(); ++s)
    if (!dfa.accept[s]) out[s].assign(dfa.edges.begin() + dfa.first[s], dfa.edges.begin() + dfa.first[s + 1]);
  return finish_dfa(std::move(out), dfa.accept);
}

}  // namespace hearth::text::grammar
