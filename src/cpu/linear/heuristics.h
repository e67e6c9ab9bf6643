// How a product is shared out: pure functions, so that a plan can be reasoned about without running it.
#pragma once
#include <cstdint>

#include "cpu/isa.h"

namespace hearth::cpu {

// Members as a grid: `row_parts` of the rows of W times `token_parts` of the rows of x.
struct LinearSplit {
  int row_parts, token_parts;
};

// row_parts * token_parts = members. Up to kDirectRows rows of x only W is split (every weight is read once); beyond,
// the grid with the least work of the busiest member, weights unpacked by each token part counted in; of grids that
// cost alike (within 1/32) the one with the most token parts, whose members read x from their own L2.
LinearSplit split_linear(int64_t N, int64_t M, int members);

struct LinearPart {
  int64_t block_begin, block_end;  // blocks of 32 rows of W
  int64_t m_begin, m_end;
};
LinearPart part_of(int64_t N, int64_t M, LinearSplit split, int member);

// How far ahead of its loads a kernel that streams weights asks for them, in bytes, to L1 and to L2; 0: not at all.
// l2 is only ever set beside l1. tiles: attention of few rows asks for the next tile of keys or values.
struct FetchAhead {
  int64_t l1 = 0, l2 = 0;
  bool tiles = false;
};

// What streams fastest (ADR 0007).
FetchAhead fetch_ahead(Isa isa, Maker maker);

}  // namespace hearth::cpu
