// y[m] = r(W[ids[m]]): a row gather; quantized rows are decoded one by one.   in: W [V, D]; out: [M, D]
#include "graph/ops/common.h"

namespace hearth::graph {

static void reference(const RefCall& c) {
  const PackedTensor& table = *c.in(0).packed;
  RefValue& y = c.out();
  for (int64_t m = 0; m < y.rows; ++m) {
    decode_row(table, c.batch.ids[static_cast<size_t>(m)], {y.row(m), static_cast<size_t>(y.cols)});
    for (int64_t d = 0; d < y.cols; ++d) y.row(m)[d] = c.r(y.row(m)[d]);
  }
}

const OpInfo kEmbed = {
    .name = "embed",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require(v.in(0).role == Role::weight && v.in(0).rows == Rows::fixed, v, "the table is no weight matrix");
      ValueInfo y;
      y.dtype = v.program.activation;
      y.cols = v.in(0).cols;
      return {y};
    },
    .cost =
        [](const OpView& v, const Extents& e) {
          return Cost{.bytes = e.M * row_bytes_of(v.in(0)) + value_bytes(v, v.op.out[0], e)};
        },
    .reference = reference,
};

}  // namespace hearth::graph
