#include "cpu/batch_check.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::cpu {
namespace {

template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::invalid_argument, "run: {}", fmt::format(format, std::forward<Args>(args)...));
}

int64_t count(const auto& span) { return static_cast<int64_t>(span.size()); }

void check_rows(const graph::Program& program, const graph::BatchView& batch,
                std::span<const graph::LoraFactors> adapters, const graph::Limits& limits) {
  const int64_t M = batch.M(), B = batch.B();
  require(M >= 1 && M <= limits.rows_max, "{} rows, the plan has room for 1 to {}", M, limits.rows_max);
  require(B >= 1 && B <= limits.sequences_max, "{} sequences, the plan has room for 1 to {}", B, limits.sequences_max);
  require(count(batch.out_rows) <= limits.gathered_max, "{} gathered rows, the plan has room for {}",
          count(batch.out_rows), limits.gathered_max);
  require(count(batch.positions) == M, "{} positions for {} rows", count(batch.positions), M);
  require(count(batch.row_begin) == B + 1, "{} row borders for {} sequences", count(batch.row_begin), B);
  require(batch.row_begin[0] == 0 && batch.row_begin[static_cast<size_t>(B)] == M,
          "the sequences own rows {} to {} of {}", batch.row_begin[0], batch.row_begin[static_cast<size_t>(B)], M);
  for (size_t b = 0; b < static_cast<size_t>(B); ++b)
    require(batch.row_begin[b] < batch.row_begin[b + 1], "sequence {} has no rows", b);
  for (const int32_t m : batch.out_rows) require(m >= 0 && m < M, "gathered row {} of {}", m, M);
  require(batch.adapter.empty() || count(batch.adapter) == B, "{} adapter slots for {} sequences", count(batch.adapter),
          B);
  const size_t modules = program.adapter_modules.size();
  if (modules > 0) {
    const auto slots = count(adapters) / static_cast<int64_t>(modules);
    require(adapters.size() % modules == 0 && slots <= limits.adapter_slots,
            "{} factors of adapters for {} modules, the plan has room for {} slots", adapters.size(), modules,
            limits.adapter_slots);
    for (const int32_t slot : batch.adapter) require(slot < slots, "adapter slot {} of {}", slot, slots);
  }
  require(batch.masks.empty() || count(batch.masks) == B, "{} masks for {} sequences", count(batch.masks), B);
}

// Every page that a row of this step appends to or sees must be there.
void check_pages(const CpuPlan& plan, const graph::BatchView& batch, const graph::HostKv* kv) {
  const auto& groups = plan.program().kv_groups;
  if (groups.empty()) return;
  require(kv != nullptr, "the program has a KV cache, the bindings have none");
  require(batch.tables.size() == groups.size(), "{} page tables for {} KV groups", batch.tables.size(), groups.size());
  for (int64_t b = 0; b < batch.B(); ++b) {
    const int64_t T = batch.row_begin[static_cast<size_t>(b + 1)] - batch.row_begin[static_cast<size_t>(b)];
    const int64_t S = batch.kv_len[static_cast<size_t>(b)];
    require(S >= T && S <= plan.limits().positions_max, "sequence {} has {} cached positions after {} rows, at most {}",
            b, S, T, plan.limits().positions_max);
    for (size_t g = 0; g < groups.size(); ++g) {
      const graph::PageTable& table = batch.tables[g];
      const int64_t window = groups[g].window, last = (S - 1) / graph::kPagePositions;
      const int64_t first = window > 0 ? std::max<int64_t>(0, S - T - window + 1) / graph::kPagePositions : 0;
      require(last < table.pages_max && count(table.pages) >= (b + 1) * table.pages_max,
              "sequence {} needs page {}, its table of KV group {} has {}", b, last, g, table.pages_max);
      for (int64_t p = first; p <= last; ++p) {
        const int32_t page = table.pages[static_cast<size_t>(b * table.pages_max + p)];
        require(page >= 0 && page < kv->pages(static_cast<int32_t>(g)),
                "sequence {}: page {} of KV group {} is {} of {}", b, p, g, page, kv->pages(static_cast<int32_t>(g)));
      }
    }
  }
}

}  // namespace

void check_batch(const CpuPlan& plan, const graph::Bindings& bindings, const graph::HostKv* kv) {
  const graph::Program& program = plan.program();
  const graph::BatchView& batch = bindings.batch;
  check_rows(program, batch, bindings.adapters, plan.limits());
  if (plan.vocabulary() > 0)
    for (const int32_t id : batch.ids)
      require(id >= 0 && id < plan.vocabulary(), "token id {} of a vocabulary of {}", id, plan.vocabulary());
  if (plan.position_rows() > 0)
    for (const int32_t position : batch.positions)
      require(position >= 0 && position < plan.position_rows(), "position {} of a table of {}", position,
              plan.position_rows());
  check_pages(plan, batch, kv);
  require(bindings.weights.size() == program.weights.size(), "{} weights for {} of the program",
          bindings.weights.size(), program.weights.size());
  require(bindings.results.size() == program.results.size(), "{} results for {} of the program",
          bindings.results.size(), program.results.size());
  const graph::Extents extents{.M = batch.M(), .gathered = count(batch.out_rows), .S = 0, .B = batch.B()};
  for (size_t i = 0; i < program.results.size(); ++i) {
    const graph::ValueInfo& value = program.value(program.results[i]);
    const int64_t needed = graph::rows_of(value, extents) * value.cols;
    require(count(bindings.results[i]) >= needed, "result {} has room for {} values, {} are written", i,
            count(bindings.results[i]), needed);
  }
}

}  // namespace hearth::cpu
