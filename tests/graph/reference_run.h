// Runs a program on the reference executor with weights given by name. Values enter through an embed of the table "x".
#pragma once
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/executor.h"

namespace hearth::graph {

using Weights = std::map<std::string, std::vector<float>>;

struct BatchRows {
  std::vector<int32_t> ids, row_begin, kv_len, positions, out_rows;  // empty: one sequence, rows 0, 1, ... from 0 on
  std::vector<MaskKind> masks;
};

// Results in order. M rows; without row_begin one sequence of them. Sequence b uses pages [2b, 2b + 1] of each group.
inline std::vector<std::vector<float>> run_reference(const Program& program, const Weights& weights, int64_t M,
                                                     BatchRows rows = {}, KvStorage* kv = nullptr,
                                                     Executor* given = nullptr) {
  const std::unique_ptr<Executor> own = given ? nullptr : make_reference_executor(1);
  Executor& executor = given ? *given : *own;
  std::vector<WeightHandle> handles;
  for (const ValueId id : program.weights) {
    const ValueInfo& v = program.value(id);
    const std::vector<float>& data = weights.at(v.name);
    HEARTH_CHECK(static_cast<int64_t>(data.size()) == v.rows_fixed * v.cols, "{}", v.name);
    const PackedTensor w{{}, v.rows_fixed, v.cols, std::as_bytes(std::span(data)), {}, {}};
    handles.push_back(executor.load(w, v.rows_fixed == 1 ? LayoutHint::vector : LayoutHint::matmul_and_gather, v.name));
  }
  const auto count_up = [M](std::vector<int32_t>& list) {
    if (!list.empty()) return;
    list.resize(static_cast<size_t>(M));
    std::iota(list.begin(), list.end(), 0);
  };
  count_up(rows.ids), count_up(rows.positions), count_up(rows.out_rows);
  if (rows.row_begin.empty()) rows.row_begin = {0, static_cast<int32_t>(M)};
  if (rows.kv_len.empty())
    for (size_t b = 0; b + 1 < rows.row_begin.size(); ++b)
      rows.kv_len.push_back(rows.row_begin[b + 1] - rows.row_begin[b]);
  std::vector<int32_t> pages(2 * rows.kv_len.size());
  std::iota(pages.begin(), pages.end(), 0);
  const std::vector<PageTable> tables(program.kv_groups.size(), PageTable{.pages = pages, .pages_max = 2});
  std::unique_ptr<KvStorage> storage;
  if (!kv && !program.kv_groups.empty()) {
    const std::vector<int64_t> counts(program.kv_groups.size(), static_cast<int64_t>(pages.size()));
    storage = executor.make_kv(program, counts);
    kv = storage.get();
  }
  const Extents e{.M = M,
                  .gathered = static_cast<int64_t>(rows.out_rows.size()),
                  .S = 0,
                  .B = static_cast<int64_t>(rows.kv_len.size())};
  std::vector<std::vector<float>> results;
  std::vector<std::span<float>> spans;
  for (const ValueId id : program.results)
    results.emplace_back(static_cast<size_t>(rows_of(program.value(id), e) * program.value(id).cols));
  for (auto& r : results) spans.emplace_back(r);
  const auto plan = executor.prepare(program, {.rows_max = M});
  executor.run(*plan, {.weights = handles,
                       .batch = {.ids = rows.ids,
                                 .positions = rows.positions,
                                 .row_begin = rows.row_begin,
                                 .kv_len = rows.kv_len,
                                 .tables = tables,
                                 .adapter = {},
                                 .out_rows = rows.out_rows,
                                 .masks = rows.masks},
                       .kv = kv,
                       .results = spans});
  executor.wait();
  return results;
}

// One op on x [M, cols] (row-major): op(builder, x) gives the result.
template <class MakeOp>
std::vector<float> apply(DType activation, int64_t cols, const std::vector<float>& x, const MakeOp& op,
                         Weights weights = {}, BatchRows rows = {}) {
  const int64_t M = static_cast<int64_t>(x.size()) / cols;
  Builder b(activation);
  const Value in = b.embed(b.matrix("x", M, cols));
  const Value y = op(b, in);
  weights["x"] = x;
  return run_reference(b.finish({y}), weights, M, std::move(rows))[0];
}

}  // namespace hearth::graph
