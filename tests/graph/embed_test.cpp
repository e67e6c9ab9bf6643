// Rows of a table by ids, by positions, and the same one for all.
#include <gtest/gtest.h>

#include "graph/op_info.h"
#include "graph/reference_run.h"
#include "support/outcome.h"

namespace hearth::graph {
namespace {

using Floats = std::vector<float>;

const Weights kTable = {{"x", {1, 2, 3, 4, 5, 6}}};

Program lookup(Value (*make)(Builder&, Value)) {
  Builder b(DType::f32);
  const Value y = make(b, b.matrix("x", 3, 2));
  return b.finish({y});
}

TEST(EmbedRows, by_positions_from_a_first_row_on) {
  const auto plain = lookup([](Builder& b, Value t) { return b.embed_positions(t, 0); });
  EXPECT_EQ(run_reference(plain, kTable, 3, {.ids = {9, 9, 9}, .positions = {1, 0, 2}})[0], (Floats{3, 4, 1, 2, 5, 6}));
  const auto shifted = lookup([](Builder& b, Value t) { return b.embed_positions(t, 2); });
  EXPECT_EQ(run_reference(shifted, kTable, 1, {.ids = {9}, .positions = {0}})[0], (Floats{5, 6}));
}

TEST(EmbedRows, the_same_row_for_all) {
  const auto row = lookup([](Builder& b, Value t) { return b.embed_row(t, 1); });
  EXPECT_EQ(run_reference(row, kTable, 2, {.ids = {9, 9}})[0], (Floats{3, 4, 3, 4}));
}

TEST(EmbedRows, a_row_that_the_table_lacks_is_refused) {
  EXPECT_EQ(test::outcome([] { lookup([](Builder& b, Value t) { return b.embed_row(t, 3); }); }),
            "corrupt_file: embed x: row 3 of a table of 3");
  EXPECT_EQ(test::outcome([] { lookup([](Builder& b, Value t) { return b.embed_positions(t, -1); }); }),
            "corrupt_file: embed x: row -1 of a table of 3");
}

TEST(EmbedRows, cost_counts_the_rows_that_are_read) {
  const Program ids = lookup([](Builder& b, Value t) { return b.embed(t); });
  const Program row = lookup([](Builder& b, Value t) { return b.embed_row(t, 1); });
  const Extents e{.M = 10};
  EXPECT_EQ(cost(ids, e).bytes, 10 * 8 + 10 * 8);
  EXPECT_EQ(cost(row, e).bytes, 1 * 8 + 10 * 8);
}

}  // namespace
}  // namespace hearth::graph
