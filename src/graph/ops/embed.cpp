// y[m] = r(W[j]), a row gather; quantized rows are decoded one by one.   in: W [V, D]; out: [M, D]
//   j = ids[m] (words), begin + positions[m] (learned positions) or begin (the type of a text that has no second one)
#include "graph/ops/common.h"

namespace hearth::graph {

static void reference(const RefCall& c) {
  const PackedTensor& table = *c.in(0).packed;
  RefValue& y = c.out();
  for (int64_t m = 0; m < y.rows; ++m) {
    decode_row(table, embed_row(c.op.attrs, c.batch, m), {y.row(m), static_cast<size_t>(y.cols)});
    for (int64_t d = 0; d < y.cols; ++d) y.row(m)[d] = c.r(y.row(m)[d]);
  }
}

int64_t embed_row(const Attrs& attrs, const BatchView& batch, int64_t m) {
  switch (attrs.lookup) {
    case Lookup::ids: return batch.ids[static_cast<size_t>(m)];
    case Lookup::positions: return attrs.begin + batch.positions[static_cast<size_t>(m)];
    case Lookup::row: break;
  }
  return attrs.begin;
}

const OpInfo kEmbed = {
    .name = "embed",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const Attrs& a = v.attrs();
      require(v.in(0).role == Role::weight && v.in(0).rows == Rows::fixed, v, "the table is no weight matrix");
      require(a.lookup == Lookup::ids || (0 <= a.begin && a.begin < v.in(0).rows_fixed), v, "row {} of a table of {}",
              a.begin, v.in(0).rows_fixed);
      ValueInfo y;
      y.dtype = v.program.activation;
      y.cols = v.in(0).cols;
      return {y};
    },
    .cost =
        [](const OpView& v, const Extents& e) {
          const int64_t read = v.attrs().lookup == Lookup::row ? 1 : e.M;
          return Cost{.bytes = read * row_bytes_of(v.in(0)) + value_bytes(v, v.op.out[0], e)};
        },
    .reference = reference,
};

}  // namespace hearth::graph
