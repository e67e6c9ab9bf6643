// Runs programs on an executor with random weights and batches, for tests.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "cpu/executor.h"
#include "cpu/random_weights.h"
#include "graph/builder.h"
#include "graph/executor.h"
#include "graph/lora_layout.h"

namespace hearth::testing {

using Rows = std::vector<std::vector<float>>;  // results: one vector each

// Weights of a program by name; matrices in `format` (K permitting), vectors and lora's factors in f32.
struct WeightSet {
  std::map<std::string, OwnedTensor> tensors;
  std::map<std::string, graph::LayoutHint> hints;
};

inline WeightSet random_weight_set(const graph::Program& program, std::span<const PackedFormat> formats,
                                   uint32_t seed) {
  std::mt19937 random(seed);
  WeightSet set;
  std::map<std::string, bool> product, table;
  for (const graph::Op& op : program.ops)
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (op.in[i] == graph::kNone) continue;
      const graph::ValueInfo& v = program.value(op.in[i]);
      if (v.role != graph::Role::weight) continue;
      if (op.kind == graph::OpKind::embed) table[v.name] = true;
      if (op.kind == graph::OpKind::linear && i == 1) product[v.name] = true;
    }
  size_t next = 0;
  for (const graph::ValueId id : program.weights) {
    const graph::ValueInfo& v = program.value(id);
    if (product[v.name] || table[v.name]) {
      PackedFormat format = formats[next++ % formats.size()];
      if (v.cols % values_per_block(format) != 0) format = {.codec = Codec::f32};
      set.tensors[v.name] =
          random_weights(random, format, v.rows_fixed, v.cols, 1.7f / std::sqrt(static_cast<float>(v.cols)));
      set.hints[v.name] = !product[v.name] ? graph::LayoutHint::gather
                          : table[v.name]  ? graph::LayoutHint::matmul_and_gather
                                           : graph::LayoutHint::matmul;
    } else {
      OwnedTensor w = random_weights(random, {.codec = Codec::f32}, v.rows_fixed, v.cols, 0.3f);
      if (v.rows_fixed == 1 && v.name.find("norm") != std::string::npos)
        for (int64_t i = 0; i < v.cols; ++i) {
          float x;
          std::memcpy(&x, w.data.data() + 4 * i, 4);
          x += 1;
          std::memcpy(w.data.data() + 4 * i, &x, 4);
        }
      set.tensors[v.name] = std::move(w);
      set.hints[v.name] = graph::LayoutHint::vector;
    }
  }
  return set;
}

// One sequence's part of a step: its new tokens, and where they begin.
struct Piece {
  int64_t sequence;
  std::vector<int32_t> ids;
  int64_t start;
  graph::MaskKind mask = graph::MaskKind::causal;
  int32_t adapter = -1;  // slot
};

// A slot's factors for a module; R = 0: none.
struct HostFactors {
  int64_t R = 0;
  float scale = 1;
  std::vector<float> a, b;  // [K, R], [R, N]
};

// An executor with a program, its weights and its cache: runs steps of pieces.
class Session {
 public:
  Session(std::unique_ptr<graph::Executor> executor, const graph::Program& program, const WeightSet& weights,
          graph::Limits limits, int64_t sequences, uint32_t page_seed = 0)
      : executor_(std::move(executor)), program_(program), limits_(limits) {
    for (const graph::ValueId id : program.weights) {
      const std::string& name = program.value(id).name;
      handles_.push_back(executor_->load(weights.tensors.at(name).view(), weights.hints.at(name), name));
    }
    plan_ = executor_->prepare(program_, limits_);
    pages_max_ = (limits.positions_max + 63) / 64;
    std::vector<int64_t> pages(program.kv_groups.size(), sequences * pages_max_ + 3);
    if (!pages.empty()) kv_ = executor_->make_kv(program_, pages);
    std::mt19937 random(page_seed);
    for (size_t g = 0; g < pages.size(); ++g) {
      std::vector<int32_t> order(static_cast<size_t>(pages[g]));
      std::iota(order.begin(), order.end(), 0);
      if (page_seed) std::shuffle(order.begin(), order.end(), random);
      order.resize(static_cast<size_t>(sequences * pages_max_));
      pages_.push_back(order);
      for (int32_t p = 0; p < pages[g]; ++p) static_cast<graph::HostKv&>(*kv_).poison(static_cast<int32_t>(g), p);
    }
  }

  // [slots, Program::adapter_modules]
  void mount(const std::vector<HostFactors>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      const graph::AdapterModule& module = program_.adapter_modules[i % program_.adapter_modules.size()];
      const HostFactors& f = all[i];
      factors_.emplace_back();
      if (f.R == 0) continue;
      std::vector<float> a(static_cast<size_t>(graph::lora_rows_a(module.K, f.R) * 16));
      std::vector<float> b(static_cast<size_t>(graph::lora_rows_b(f.R, module.N) * 32));
      for (int64_t r = 0; r < f.R; ++r) {
        for (int64_t k = 0; k < module.K; ++k)
          a[static_cast<size_t>(graph::lora_index_a(module.K, k, r))] = f.a[static_cast<size_t>(k * f.R + r)];
        for (int64_t n = 0; n < module.N; ++n)
          b[static_cast<size_t>(graph::lora_index_b(f.R, r, n))] = f.b[static_cast<size_t>(r * module.N + n)];
      }
      const auto load = [&](const std::vector<float>& values, int64_t cols) {
        const auto rows = static_cast<int64_t>(values.size()) / cols;
        return executor_->load({{.codec = Codec::f32}, rows, cols, std::as_bytes(std::span(values)), {}, {}},
                               graph::LayoutHint::vector, module.name);
      };
      factors_.back() = {.a = load(a, 16), .b = load(b, 32), .R = f.R, .scale = f.scale};
    }
  }

  // Logits and other results; `gather` chooses the last row of every piece or all rows.
  Rows step(const std::vector<Piece>& pieces, bool gather_all = true) {
    std::vector<int32_t> ids, positions, row_begin = {0}, kv_len, out_rows;
    std::vector<graph::MaskKind> masks;
    std::vector<int32_t> adapters;
    std::vector<std::vector<int32_t>> tables(pages_.size());
    for (const Piece& piece : pieces) {
      for (size_t t = 0; t < piece.ids.size(); ++t) {
        positions.push_back(static_cast<int32_t>(piece.start + static_cast<int64_t>(t)));
        if (gather_all || t + 1 == piece.ids.size()) out_rows.push_back(static_cast<int32_t>(ids.size()));
        ids.push_back(piece.ids[t]);
      }
      row_begin.push_back(static_cast<int32_t>(ids.size()));
      kv_len.push_back(static_cast<int32_t>(piece.start + static_cast<int64_t>(piece.ids.size())));
      masks.push_back(piece.mask);
      if (!program_.adapter_modules.empty()) adapters.push_back(piece.adapter);
      for (size_t g = 0; g < pages_.size(); ++g) {
        std::vector<int32_t> row(pages_[g].begin() + piece.sequence * pages_max_,
                                 pages_[g].begin() + (piece.sequence + 1) * pages_max_);
        const int64_t live = (kv_len.back() + 63) / 64, window = program_.kv_groups[g].window;
        for (int64_t p = live; p < pages_max_; ++p) row[static_cast<size_t>(p)] = -1;
        if (window > 0)
          for (int64_t p = 0; p < (piece.start - window + 1) / 64; ++p) row[static_cast<size_t>(p)] = -1;
        tables[g].insert(tables[g].end(), row.begin(), row.end());
      }
    }
    std::vector<graph::PageTable> views;
    for (const auto& table : tables) views.push_back({table, pages_max_});
    graph::Bindings bindings;
    bindings.weights = handles_;
    bindings.batch = {.ids = ids,
                      .positions = positions,
                      .row_begin = row_begin,
                      .kv_len = kv_len,
                      .tables = views,
                      .adapter = adapters,
                      .out_rows = out_rows,
                      .masks = masks};
    bindings.kv = kv_.get();
    bindings.adapters = factors_;
    const graph::Extents extents{
        .M = bindings.batch.M(), .gathered = static_cast<int64_t>(out_rows.size()), .S = 0, .B = bindings.batch.B()};
    Rows rows;
    std::vector<std::span<float>> spans;
    for (const graph::ValueId id : program_.results) {
      const graph::ValueInfo& v = program_.value(id);
      rows.emplace_back(static_cast<size_t>(graph::rows_of(v, extents) * v.cols), std::nanf(""));
    }
    for (auto& r : rows) spans.emplace_back(r);
    bindings.results = spans;
    executor_->run(*plan_, bindings);
    executor_->wait();
    return rows;
  }

  graph::Executor& executor() { return *executor_; }
  const graph::Plan& plan() const { return *plan_; }

 private:
  std::unique_ptr<graph::Executor> executor_;
  graph::Program program_;
  graph::Limits limits_;
  std::vector<graph::WeightHandle> handles_;
  std::unique_ptr<graph::Plan> plan_;
  std::unique_ptr<graph::KvStorage> kv_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<graph::LoraFactors> factors_;
  int64_t pages_max_ = 0;
};

inline std::unique_ptr<graph::Executor> cpu_executor(cpu::Isa isa, int threads) {
  cpu::CpuOptions options;
  options.threads = threads;
  options.isa = isa;
  options.poison = true;
  return cpu::make_cpu_executor(options);
}

inline std::vector<int32_t> random_ids(std::mt19937& random, int64_t n, int32_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary));
  return ids;
}

inline double relative_error(const std::vector<float>& y, const std::vector<float>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(y[i]) && !std::isnan(want[i])) return INFINITY;
    error += (double{y[i]} - want[i]) * (double{y[i]} - want[i]);
    size += double{want[i]} * want[i];
  }
  return std::sqrt(error / std::max(size, 1e-30));
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << what << ": value " << i << " is " << a[i] << " and " << b[i];
}

}  // namespace hearth::testing
