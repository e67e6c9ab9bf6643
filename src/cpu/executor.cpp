#include "cpu/executor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "cpu/batch_check.h"
#include "cpu/pack_cache.h"
#include "cpu/steps.h"

namespace hearth::cpu {
namespace {

using graph::LayoutHint;

class CpuExecutor final : public graph::Executor {
 public:
  explicit CpuExecutor(const CpuOptions& options)
      : options_(options), kernels_(kernel_table(options.isa)), team_(options.threads) {
    space_.members.resize(static_cast<size_t>(options.threads));
    if (!options.pack_cache_dir.empty() && !options.pack_cache_key.empty())
      cache_ = std::make_unique<PackCache>(options.pack_cache_dir, options.pack_cache_key);
  }

  graph::WeightHandle load(const PackedTensor& w, LayoutHint hint, std::string_view name) override {
    validate(w, name);
    auto weight = std::make_unique<Weight>();
    weight->N = w.N;
    weight->K = w.K;
    switch (hint) {
      case LayoutHint::vector:
        weight->dense.resize(static_cast<size_t>(w.N * w.K));
        for (int64_t n = 0; n < w.N; ++n)
          decode_row(w, n, std::span(weight->dense).subspan(static_cast<size_t>(n * w.K), static_cast<size_t>(w.K)));
        bytes_ += 4 * w.N * w.K;
        break;
      case LayoutHint::gather:
        weight->view = w;
        bytes_ += static_cast<int64_t>(w.data.size() + w.scales.size() + w.biases.size());
        break;
      case LayoutHint::matmul:
      case LayoutHint::matmul_and_gather:
        weight->matrix = packed(w, name);
        bytes_ += static_cast<int64_t>(weight->matrix.bytes().size());
        break;
    }
    weights_.push_back(std::move(weight));
    return {static_cast<int32_t>(weights_.size()) - 1};
  }

  std::unique_ptr<graph::Plan> prepare(const graph::Program& program, const graph::Limits& limits) override {
    if (cache_) cache_->save();  // all weights are there by now
    auto plan = std::make_unique<CpuPlan>(program, limits, team_.size());
    space_.fit(*plan, options_.isa);
    bound_.reserve(std::max(bound_.capacity(), program.weights.size()));
    seconds_.resize(std::max(seconds_.size(), plan->program().ops.size()));
    times_.reserve(std::max(times_.capacity(), plan->program().ops.size()));
    return plan;
  }

  std::unique_ptr<graph::KvStorage> make_kv(const graph::Program& program, std::span<const int64_t> pages) override {
    return std::make_unique<graph::HostKv>(program.kv_groups, program.kv_layers, pages);
  }

  void run(graph::Plan& base, const graph::Bindings& bindings) override {
    auto& plan = static_cast<CpuPlan&>(base);
    const auto* kv = static_cast<const graph::HostKv*>(bindings.kv);
    check_batch(plan, bindings, kv);
    bind(plan, bindings);
    if (options_.poison) space_.poison();
    for (AttentionSchedule& schedule : plan.schedules()) schedule.build(bindings.batch);
    if (timing_) std::fill(seconds_.begin(), seconds_.end(), 0.0);

    const graph::BatchView& batch = bindings.batch;
    const Run state{.kernels = kernels_,
                    .plan = plan,
                    .list = plan.list(batch.M(), static_cast<int64_t>(batch.out_rows.size()), batch.B()),
                    .bindings = bindings,
                    .kv = kv,
                    .weights = bound_,
                    .space = space_,
                    .team = team_,
                    .seconds = timing_ ? seconds_.data() : nullptr};
    team_.run([&](int member) { run_steps(state, member); });
    if (!timing_) return;
    times_.clear();
    for (size_t i = 0; i < plan.program().ops.size(); ++i) times_.push_back({static_cast<int32_t>(i), seconds_[i]});
  }

  void wait() override {}

  graph::DeviceInfo info() const override {
    const int64_t free = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return {fmt::format("cpu {}, {} threads", name_of(options_.isa), team_.size()),
            free,
            {graph::Numerics::parity, graph::Numerics::deterministic, graph::Numerics::fast}};
  }
  int64_t weight_bytes() const override { return bytes_; }
  void set_timing(bool on) override { timing_ = on; }
  std::span<const graph::OpTime> timing() const override { return times_; }

 private:
  Matrix packed(const PackedTensor& w, std::string_view name) {
    if (cache_)
      if (std::optional<Matrix> kept = cache_->find(name, w)) return *kept;
    const auto start = std::chrono::steady_clock::now();
    Matrix matrix = Matrix::pack(w, &team_);
    if (cache_)
      cache_->add(name, matrix, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return matrix;
  }

  // Handles -> weights, and that each weight was loaded in the layouts that its readers need.
  void bind(const CpuPlan& plan, const graph::Bindings& bindings) {
    const graph::Program& program = plan.program();
    bound_.clear();
    for (size_t i = 0; i < program.weights.size(); ++i) {
      const graph::ValueInfo& value = program.value(program.weights[i]);
      const int32_t id = bindings.weights[i].id;
      if (id < 0 || id >= static_cast<int32_t>(weights_.size()))
        fail(ErrorKind::invalid_argument, "weight {}: handle {} was not given by this executor", value.name, id);
      const Weight& weight = *weights_[static_cast<size_t>(id)];
      if (weight.N != value.rows_fixed || weight.K != value.cols)
        fail(ErrorKind::invalid_argument, "weight {}: [{}, {}] is loaded, the program has [{}, {}]", value.name,
             weight.N, weight.K, value.rows_fixed, value.cols);
      const WeightUse use = plan.weight_use(i);
      const bool packed = weight.matrix.N() > 0;
      if ((use.product && !packed) || (use.dense && weight.dense.empty()) || (use.rows && !weight.dense.empty()))
        fail(ErrorKind::invalid_argument, "weight {}: its layout hint does not fit its use as {}", value.name,
             use.product ? "a matrix"
             : use.dense ? "a vector"
                         : "a table");
      bound_.push_back(&weight);
    }
  }

  CpuOptions options_;
  const KernelTable& kernels_;
  Team team_;
  Workspace space_;
  std::unique_ptr<PackCache> cache_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<const Weight*> bound_;  // of the run, as Program::weights
  int64_t bytes_ = 0;
  bool timing_ = false;
  std::vector<double> seconds_;
  std::vector<graph::OpTime> times_;
};

}  // namespace

std::unique_ptr<graph::Executor> make_cpu_executor(const CpuOptions& options) {
  if (!available(options.isa))
    fail(ErrorKind::invalid_argument, "cpu: this CPU lacks {}; its best is {}", name_of(options.isa),
         name_of(available_isas().back()));
  return std::make_unique<CpuExecutor>(options);
}

}  // namespace hearth::cpu
