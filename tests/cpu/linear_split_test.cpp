#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "cpu/isa.h"
#include "cpu/linear/heuristics.h"
#include "cpu/linear/layout.h"

namespace hearth::cpu {
namespace {

TEST(LinearSplit, parts_cover_every_output_once) {
  for (const int64_t N : {1, 32, 33, 192, 576, 1000})
    for (const int64_t M : {1, 8, 9, 17, 100, 512})
      for (int members = 1; members <= 9; ++members) {
        std::vector<int> seen(static_cast<size_t>(blocks_of(N) * M));
        const LinearSplit split = split_linear(N, M, members);
        ASSERT_EQ(split.row_parts * split.token_parts, members);
        for (int member = 0; member < members; ++member) {
          const LinearPart p = part_of(N, M, split, member);
          for (int64_t b = p.block_begin; b < p.block_end; ++b)
            for (int64_t m = p.m_begin; m < p.m_end; ++m) ++seen[static_cast<size_t>(b * M + m)];
        }
        for (const int count : seen) ASSERT_EQ(count, 1) << N << " " << M << " " << members;
      }
}

TEST(LinearSplit, few_rows_of_x_split_W_alone) {
  for (int members = 1; members <= 8; ++members) EXPECT_EQ(split_linear(4096, 8, members).row_parts, members);
}

TEST(LinearSplit, narrow_matrices_split_tokens) {
  EXPECT_GT(split_linear(64, 512, 8).token_parts, 1);  // two blocks cannot feed eight members
}

TEST(LinearSplit, tokens_are_split_where_that_costs_as_much) {
  EXPECT_EQ(split_linear(4096, 512, 2).token_parts, 2);
  EXPECT_EQ(split_linear(4096, 24, 2).row_parts, 2);  // unpacking twice would cost more than it saves
}

TEST(Isa, names_are_checked) {
  EXPECT_EQ(isa_named("generic"), Isa::generic);
  EXPECT_THROW(isa_named("sse"), Error);
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::amx}) {
    if (available(isa)) EXPECT_EQ(isa_named(name_of(isa)), isa);
    else EXPECT_THROW(isa_named(name_of(isa)), Error);
  }
}

TEST(FetchAhead, depends_on_maker_and_instruction_set_alone) {
  for (const Maker maker : {Maker::intel, Maker::other}) EXPECT_EQ(fetch_ahead(Isa::generic, maker).l1, 0);
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::amx}) {
    const FetchAhead intel = fetch_ahead(isa, Maker::intel);
    EXPECT_GT(intel.l2, intel.l1);
    EXPECT_GT(intel.l1, 0);
  }
  EXPECT_GT(fetch_ahead(Isa::avx2, Maker::other).l1, 0);
  EXPECT_EQ(fetch_ahead(Isa::avx2, Maker::other).l2, 0);
  const FetchAhead zen4 = fetch_ahead(Isa::avx512, Maker::other);
  EXPECT_GT(zen4.l2, zen4.l1);
}

}  // namespace
}  // namespace hearth::cpu
