#include "cpu/linear/heuristics.h"

#include <algorithm>

#include "cpu/linear/layout.h"

namespace hearth::cpu {
namespace {

constexpr int64_t kDirectRows = 8;
constexpr int64_t kUnpackRows = 2;  // unpacking a panel costs about as much as so many rows of x
constexpr int64_t kTokens = 16;     // token parts end at multiples: whole tiles of every kernel but for the last

int64_t per_part(int64_t n, int parts) { return (n + parts - 1) / parts; }

}  // namespace

LinearSplit split_linear(int64_t N, int64_t M, int members) {
  LinearSplit best{members, 1};
  if (M <= kDirectRows) return best;
  const int64_t blocks = blocks_of(N), tiles = (M + kTokens - 1) / kTokens;
  const auto cost = [&](int rows, int tokens) {
    return per_part(blocks, rows) * (std::min(M, per_part(tiles, tokens) * kTokens) + kUnpackRows);
  };
  const auto alike_or_less = [](int64_t a, int64_t b) { return a * 32 <= b * 33; };
  for (int tokens = 2; tokens <= members; ++tokens)
    if (members % tokens == 0 && alike_or_less(cost(members / tokens, tokens), cost(best.row_parts, best.token_parts)))
      best = {members / tokens, tokens};
  return best;
}

LinearPart part_of(int64_t N, int64_t M, LinearSplit split, int member) {
  const int row = member % split.row_parts, token = member / split.row_parts;
  const int64_t blocks = blocks_of(N), tiles = (M + kTokens - 1) / kTokens;
  return {.block_begin = blocks * row / split.row_parts,
          .block_end = blocks * (row + 1) / split.row_parts,
          .m_begin = std::min(M, tiles * token / split.token_parts * kTokens),
          .m_end = std::min(M, tiles * (token + 1) / split.token_parts * kTokens)};
}

FetchAhead fetch_ahead(Isa isa, Maker maker) {
  if (isa == Isa::generic) return {};
  if (maker == Maker::intel) return {.l1 = 4096, .l2 = 8192, .tiles = true};
  return isa == Isa::avx2 ? FetchAhead{.l1 = 2048} : FetchAhead{.l1 = 2048, .l2 = 4096, .tiles = true};
}

}  // namespace hearth::cpu
