// slice_cols, concat_cols: columns of a value, values side by side (views for fused projections).
// gather_rows: the rows of out_rows; after it, rows are the gathered ones.
// pool: last, mean or first (cls) row of every sequence, then x / max(norm, 1e-12) if asked, fp32.
#include <algorithm>
#include <cmath>

#include "graph/ops/common.h"

namespace hearth::graph {

static void pool_reference(const RefCall& c) {
  const RefValue& x = c.in(0);
  for (int64_t b = 0; b < c.batch.B(); ++b) {
    const int64_t begin = c.batch.row_begin[static_cast<size_t>(b)],
                  end = c.batch.row_begin[static_cast<size_t>(b + 1)];
    double norm = 0;
    for (int64_t d = 0; d < x.cols; ++d) {
      double y = 0;
      switch (c.op.attrs.pooling) {
        case Pooling::last: y = x.row(end - 1)[d]; break;
        case Pooling::cls: y = x.row(begin)[d]; break;
        case Pooling::mean:
          for (int64_t m = begin; m < end; ++m) y += x.row(m)[d];
          y /= static_cast<double>(end - begin);
      }
      c.out().row(b)[d] = static_cast<float>(y);
      norm += y * y;
    }
    if (c.op.attrs.normalize)
      for (int64_t d = 0; d < x.cols; ++d)
        c.out().row(b)[d] = static_cast<float>(c.out().row(b)[d] / std::max(std::sqrt(norm), 1e-12));
  }
}

const OpInfo kSliceCols = {
    .name = "slice_cols",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const Attrs& a = v.attrs();
      require(0 <= a.begin && a.begin < a.end && a.end <= v.in(0).cols, v, "columns {} to {} of {}", a.begin, a.end,
              v.in(0).cols);
      return {like(v, v.in(0), a.end - a.begin, v.in(0).dtype == DType::f32)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 0); },
    .reference =
        [](const RefCall& c) {
          for (int64_t m = 0; m < c.out().rows; ++m)
            std::copy_n(c.in(0).row(m) + c.op.attrs.begin, c.out().cols, c.out().row(m));
        },
};

const OpInfo kConcatCols = {
    .name = "concat_cols",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require(v.in(0).rows == v.in(1).rows, v, "the operands have different rows");
      return {like(v, v.in(0), v.in(0).cols + v.in(1).cols, v.in(0).dtype == DType::f32)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 0); },
    .reference =
        [](const RefCall& c) {
          for (int64_t m = 0; m < c.out().rows; ++m) {
            std::copy_n(c.in(0).row(m), c.in(0).cols, c.out().row(m));
            std::copy_n(c.in(1).row(m), c.in(1).cols, c.out().row(m) + c.in(0).cols);
          }
        },
};

const OpInfo kGatherRows = {
    .name = "gather_rows",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require(v.in(0).rows == Rows::packed, v, "rows were gathered before");
      ValueInfo y = like(v, v.in(0), v.in(0).cols, v.in(0).dtype == DType::f32);
      y.rows = Rows::gathered;
      return {y};
    },
    .cost = [](const OpView& v, const Extents& e) { return Cost{.bytes = 2 * value_bytes(v, v.op.out[0], e)}; },
    .reference =
        [](const RefCall& c) {
          for (int64_t i = 0; i < c.out().rows; ++i)
            std::copy_n(c.in(0).row(c.batch.out_rows[static_cast<size_t>(i)]), c.out().cols, c.out().row(i));
        },
};

const OpInfo kPool = {
    .name = "pool",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      ValueInfo y = like(v, v.in(0), v.in(0).cols, true);
      y.rows = Rows::sequences;
      return {y};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 3); },
    .reference = pool_reference,
};

}  // namespace hearth::graph
