// lora: y' = r(y + r(s * ((x A) B))), both products unrounded fp32 (Hu et al. 2021).
//   in: y [M, N], x [M, K], A [K, R], B [R, N]; s and the factors are the op's own, or
//   in: y [M, N], x [M, K], with attrs.module: A, B and s of the sequence's adapter slot (Bindings::adapters).
// Rows whose sequence has no adapter, or whose adapter leaves the module alone, keep y's bits.
#include <algorithm>

#include "graph/lora_layout.h"
#include "graph/ops/common.h"

namespace hearth::graph {
namespace {

bool by_slot(const OpView& v) { return v.attrs().module >= 0; }

// The sequence of row m of a value.
int64_t sequence_of(const BatchView& batch, Rows rows, int64_t m) {
  if (rows == Rows::sequences) return m;
  const int32_t row = rows == Rows::gathered ? batch.out_rows[static_cast<size_t>(m)] : static_cast<int32_t>(m);
  const auto after = std::upper_bound(batch.row_begin.begin(), batch.row_begin.end(), row);
  return after - batch.row_begin.begin() - 1;
}

void reference(const RefCall& c) {
  const RefValue &y = c.in(0), &x = c.in(1);
  const bool slots = c.op.attrs.module >= 0;
  const auto modules = static_cast<int64_t>(c.program.adapter_modules.size());
  for (int64_t m = 0; m < y.rows; ++m) {
    std::copy_n(y.row(m), y.cols, c.out().row(m));
    const int64_t sequence = sequence_of(c.batch, c.program.value(c.op.out[0]).rows, m);
    const int32_t slot = c.batch.adapter.empty() ? (slots ? -1 : 0) : c.batch.adapter[static_cast<size_t>(sequence)];
    if (slot < 0) continue;
    RefFactors f;
    if (slots) f = c.adapters[static_cast<size_t>(slot * modules + c.op.attrs.module)];
    else f = {c.in(2).packed, c.in(3).packed, c.op.attrs.scale, c.in(2).packed->K};
    if (!f.a) continue;
    const int64_t R = f.R;
    const auto in_order = [](const PackedTensor& w, int64_t i) { return decode_value(w, i / w.K, i % w.K); };
    const auto a = [&](int64_t k, int64_t r) {
      return slots ? in_order(*f.a, lora_index_a(x.cols, k, r)) : decode_value(*f.a, k, r);
    };
    const auto b = [&](int64_t r, int64_t n) {
      return slots ? in_order(*f.b, lora_index_b(R, r, n)) : decode_value(*f.b, r, n);
    };
    std::vector<double> t(static_cast<size_t>(R), 0.0);
    for (int64_t k = 0; k < x.cols; ++k)
      for (int64_t r = 0; r < R; ++r) t[static_cast<size_t>(r)] += double{x.row(m)[k]} * a(k, r);
    for (int64_t n = 0; n < y.cols; ++n) {
      double sum = 0;
      for (int64_t r = 0; r < R; ++r) sum += double{static_cast<float>(t[static_cast<size_t>(r)])} * b(r, n);
      c.out().row(m)[n] = c.r(y.row(m)[n] + c.r(f.scale * static_cast<float>(sum)));
    }
  }
}

std::vector<ValueInfo> infer(const OpView& v) {
  const ValueInfo &y = v.in(0), &x = v.in(1);
  require(y.rows == x.rows, v, "x and y have not the same rows");
  if (by_slot(v)) {
    require(static_cast<size_t>(v.attrs().module) < v.program.adapter_modules.size() && v.ins() == 2, v,
            "module {} of {}", v.attrs().module, v.program.adapter_modules.size());
    const AdapterModule& module = v.program.adapter_modules[static_cast<size_t>(v.attrs().module)];
    require(y.rows == Rows::packed, v, "adapters by slot change values of all rows of a step alone");
    require(module.N == y.cols && module.K == x.cols, v, "the module is [{}, {}] for x of {} and y of {} columns",
            module.N, module.K, x.cols, y.cols);
  } else {
    const ValueInfo &a = v.in(2), &b = v.in(3);
    require(a.rows_fixed == x.cols && b.rows_fixed == a.cols && b.cols == y.cols, v,
            "A is [{}, {}], B is [{}, {}] for x of {} and y of {} columns", a.rows_fixed, a.cols, b.rows_fixed, b.cols,
            x.cols, y.cols);
  }
  return {like(v, y, y.cols)};
}

// By slot nothing is counted: most steps have no adapter, and what one costs is its own rank's.
Cost cost(const OpView& v, const Extents& e) {
  if (by_slot(v)) return {};
  Cost c = streaming_cost(v, e, 2);
  c.flops += 2 * rows_of(v.in(0), e) * v.in(2).cols * (v.in(2).rows_fixed + v.in(3).cols);
  return c;
}

}  // namespace

const OpInfo kLora = {.name = "lora", .infer = infer, .cost = cost, .reference = reference};

}  // namespace hearth::graph
