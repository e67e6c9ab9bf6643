// Runs a Program op by op through OpInfo::reference. The meaning of every faster executor.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "graph/executor.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::graph {
namespace {

class ReferencePlan final : public Plan {
 public:
  explicit ReferencePlan(Program program) : program_(std::move(program)) {
    last_use_.assign(program_.values.size(), -1);
    for (size_t i = 0; i < program_.ops.size(); ++i)
      for (const ValueId id : program_.ops[i].in)
        if (id != kNone) last_use_[static_cast<size_t>(id)] = static_cast<int32_t>(i);
    for (const ValueId id : program_.results) last_use_[static_cast<size_t>(id)] = INT32_MAX;
  }
  const Program& program() const override { return program_; }
  int64_t arena_bytes() const override { return 0; }

  // Op i is the last that reads the value, and the value is nobody else's.
  bool releases(size_t i, ValueId id) const {
    return id != kNone && last_use_[static_cast<size_t>(id)] == static_cast<int32_t>(i) &&
           program_.value(id).role == Role::temp;
  }

  Program program_;
  std::vector<int32_t> last_use_;
};

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(int threads) : threads_(threads) {}

  WeightHandle load(const PackedTensor& w, LayoutHint hint, std::string_view name) override {
    if (const int64_t bad = count_nonfinite(w); bad > 0) bad_.push_back({std::string(name), bad});
    Weight weight;
    const size_t bytes = w.data.size() + w.scales.size() + w.biases.size();
    weight.storage.resize(bytes);  // views only live during the call
    std::byte* at = weight.storage.data();
    const auto keep = [&](std::span<const std::byte> from) {
      std::copy(from.begin(), from.end(), at);
      at += from.size();
      return std::span<const std::byte>(at - from.size(), from.size());
    };
    weight.view = w;
    weight.view.data = keep(w.data);
    weight.view.scales = keep(w.scales);
    weight.view.biases = keep(w.biases);
    if (hint == LayoutHint::vector) {
      weight.vector.resize(static_cast<size_t>(w.N * w.K));
      for (int64_t n = 0; n < w.N; ++n)
        decode_row(weight.view, n,
                   std::span(weight.vector).subspan(static_cast<size_t>(n * w.K), static_cast<size_t>(w.K)));
    }
    weight.bytes = weight_need({w.format, w.N, w.K, static_cast<int64_t>(bytes)}, hint);
    bytes_ += weight.bytes;
    const auto free = std::find(weights_.begin(), weights_.end(), nullptr);
    const auto id = static_cast<int32_t>(free - weights_.begin());
    if (free == weights_.end()) weights_.emplace_back();
    weights_[static_cast<size_t>(id)] = std::make_unique<Weight>(std::move(weight));
    return {id};
  }

  void unload(WeightHandle weight) override {
    std::unique_ptr<Weight>& gone = weights_[static_cast<size_t>(weight.id)];
    bytes_ -= gone->bytes;
    gone.reset();
  }

  std::unique_ptr<Plan> prepare(const Program& program, const Limits& limits) override {
    const PlanExtent plan{program, limits};
    working_ = std::max(working_, working_need({&plan, 1}));
    return std::make_unique<ReferencePlan>(program);
  }

  std::unique_ptr<KvStorage> make_kv(const Program& program, std::span<const int64_t> pages) override {
    return std::make_unique<HostKv>(program.kv_groups, program.kv_layers, pages);
  }

  void run(Plan& base, const Bindings& bindings) override {
    auto& plan = static_cast<ReferencePlan&>(base);
    const Program& program = plan.program_;
    const BatchView& batch = bindings.batch;
    const Extents extents{
        .M = batch.M(), .gathered = static_cast<int64_t>(batch.out_rows.size()), .S = 0, .B = batch.B()};
    std::vector<RefValue> values(program.values.size());
    for (size_t i = 0; i < program.weights.size(); ++i) {
      const Weight& weight = *weights_[static_cast<size_t>(bindings.weights[i].id)];
      RefValue& value = values[static_cast<size_t>(program.weights[i])];
      value.rows = weight.view.N;
      value.cols = weight.view.K;
      value.packed = &weight.view;
      value.data = weight.vector;
    }
    std::vector<RefFactors> adapters;
    for (const LoraFactors& f : bindings.adapters)
      adapters.push_back(f.R == 0 ? RefFactors{} : RefFactors{&view_of(f.a), &view_of(f.b), f.scale, f.R});
    times_.clear();
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      for (const ValueId id : op.out) {
        RefValue& out = values[static_cast<size_t>(id)];
        out.rows = rows_of(program.value(id), extents);
        out.cols = program.value(id).cols;
        out.data.assign(static_cast<size_t>(out.rows * out.cols), 0.0f);
      }
      const auto start = std::chrono::steady_clock::now();
      info(op.kind).reference(RefCall{program, op, batch, static_cast<HostKv*>(bindings.kv), values,
                                      static_cast<int64_t>(threads_), adapters});
      if (timing_)
        times_.push_back(
            {static_cast<int32_t>(i), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
      for (const ValueId id : op.in)
        if (plan.releases(i, id)) values[static_cast<size_t>(id)].data = {};
    }
    for (size_t i = 0; i < program.results.size(); ++i) {
      const RefValue& value = values[static_cast<size_t>(program.results[i])];
      HEARTH_CHECK(bindings.results[i].size() >= value.data.size(), "result {}", i);
      std::copy(value.data.begin(), value.data.end(), bindings.results[i].begin());
    }
  }

  void wait() override {}

  DeviceInfo info() const override {
    const int64_t free = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return {fmt::format("reference, {} threads", threads_), free, {Numerics::parity, Numerics::deterministic}};
  }
  int64_t weight_bytes() const override { return bytes_; }
  int64_t working_bytes() const override { return working_; }
  std::span<const BadWeight> bad_weights() const override { return bad_; }

  int64_t weight_need(const WeightExtent& weight, LayoutHint hint) const override {
    return weight.stored + (hint == LayoutHint::vector ? 4 * weight.N * weight.K : 0);
  }

  // The most that values hold at once, each from the op that makes it to the last that reads it.
  int64_t working_need(std::span<const PlanExtent> plans) const override {
    int64_t most = 0;
    for (const auto& [program, limit] : plans) {
      const ReferencePlan plan(program);
      const auto bytes_of = [&](ValueId id) {
        return 4 * rows_max(program.value(id).rows, limit) * program.value(id).cols;
      };
      int64_t held = 0;
      for (size_t i = 0; i < program.ops.size(); ++i) {
        for (const ValueId id : program.ops[i].out) held += bytes_of(id);
        most = std::max(most, held);
        const auto& in = program.ops[i].in;
        for (auto id = in.begin(); id != in.end(); ++id)
          if (plan.releases(i, *id) && std::find(in.begin(), id, *id) == id) held -= bytes_of(*id);
      }
    }
    return most;
  }
  void set_timing(bool on) override { timing_ = on; }
  std::span<const OpTime> timing() const override { return times_; }

 private:
  const PackedTensor& view_of(WeightHandle w) const { return weights_[static_cast<size_t>(w.id)]->view; }
  static const OpInfo& info(OpKind kind) { return graph::info(kind); }

  struct Weight {
    std::vector<std::byte> storage;
    PackedTensor view;
    std::vector<float> vector;
    int64_t bytes = 0;
  };
  int threads_;
  std::vector<std::unique_ptr<Weight>> weights_;
  int64_t bytes_ = 0, working_ = 0;
  std::vector<BadWeight> bad_;
  bool timing_ = false;
  std::vector<OpTime> times_;
};

}  // namespace

std::unique_ptr<Executor> make_reference_executor(int threads) { return std::make_unique<ReferenceExecutor>(threads); }

}  // namespace hearth::graph
