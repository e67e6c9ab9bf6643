#include "cpu/executor.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/error.h"
#include "cpu/batch_check.h"
#include "cpu/steps.h"
#include "cpu/weight_arena.h"

namespace hearth::cpu {
namespace {

using graph::LayoutHint;

class CpuExecutor final : public graph::Executor {
 public:
  explicit CpuExecutor(const CpuOptions& options)
      : options_(options), kernels_(kernel_table(options.isa)), team_(options.threads) {
    space_.members.resize(static_cast<size_t>(options.threads));
    if (!options.pack_cache.dir.empty()) cache_ = std::make_unique<PackCache>(options.pack_cache);
  }

  graph::WeightHandle load(const PackedTensor& w, LayoutHint hint, std::string_view name) override {
    validate(w, name);
    auto weight = std::make_unique<Weight>();
    weight->N = w.N;
    weight->K = w.K;
    int64_t bad = 0;
    switch (hint) {
      case LayoutHint::vector:
        bad = count_nonfinite(w);
        weight->dense.resize(static_cast<size_t>(w.N * w.K));
        for (int64_t n = 0; n < w.N; ++n)
          decode_row(w, n, std::span(weight->dense).subspan(static_cast<size_t>(n * w.K), static_cast<size_t>(w.K)));
        break;
      case LayoutHint::gather:
        bad = checked(w, name);
        weight->view = w;
        break;
      case LayoutHint::matmul:
      case LayoutHint::matmul_and_gather: {
        PackCache::Found found = packed(w, name);
        weight->matrix = std::move(found.matrix);
        bad = found.nonfinite;
        break;
      }
    }
    if (bad > 0) bad_.push_back({std::string(name), bad});
    const auto stored = static_cast<int64_t>(w.data.size() + w.scales.size() + w.biases.size());
    weight->bytes = weight_need({w.format, w.N, w.K, stored}, hint);
    bytes_ += weight->bytes;
    const auto free = std::find(weights_.begin(), weights_.end(), nullptr);
    const auto at = static_cast<int32_t>(free - weights_.begin());
    if (free == weights_.end()) weights_.emplace_back();
    weights_[static_cast<size_t>(at)] = std::move(weight);
    return {at};
  }

  void unload(graph::WeightHandle weight) override {
    std::unique_ptr<Weight>& gone = weights_[static_cast<size_t>(weight.id)];
    bytes_ -= gone->bytes;
    gone.reset();
  }

  std::unique_ptr<graph::Plan> prepare(const graph::Program& program, const graph::Limits& limits) override {
    if (cache_) cache_->save();  // all weights are there by now
    auto plan = std::make_unique<CpuPlan>(program, limits, team_.size());
    need_.include(*plan, options_.isa);
    space_.fit(need_);
    adapters_.reserve(program, limits);
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
    adapters_.build(plan, bindings, weights_);
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
                    .adapters = adapters_,
                    .team = team_,
                    .seconds = timing_ ? seconds_.data() : nullptr};
    team_.run([&](int member) { run_steps(state, member); });
    if (!timing_) return;
    times_.clear();
    for (size_t i = 0; i < plan.program().ops.size(); ++i) times_.push_back({static_cast<int32_t>(i), seconds_[i]});
  }

  void wait() override {}

  void for_each(int64_t count, const std::function<void(int64_t)>& f) override {
    if (count <= 1) return Executor::for_each(count, f);
    std::atomic<int64_t> next{0};
    team_.run([&](int) {
      for (int64_t i = next++; i < count; i = next++) f(i);
    });
  }

  graph::DeviceInfo info() const override {
    const int64_t free = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return {fmt::format("cpu {}, {} threads", name_of(options_.isa), team_.size()),
            free,
            {graph::Numerics::parity, graph::Numerics::deterministic, graph::Numerics::fast}};
  }
  int64_t weight_bytes() const override { return bytes_; }
  int64_t working_bytes() const override { return space_.bytes(); }
  std::span<const graph::BadWeight> bad_weights() const override { return bad_; }

  int64_t weight_need(const WeightExtent& w, LayoutHint hint) const override {
    switch (hint) {
      case LayoutHint::vector: return 4 * w.N * w.K;
      case LayoutHint::gather: return w.stored;
      case LayoutHint::matmul:
      case LayoutHint::matmul_and_gather: break;
    }
    return Matrix::packed_bytes(w.format, w.N, w.K);
  }
  int64_t working_need(std::span<const PlanExtent> plans) const override {
    WorkspaceNeed need = need_;
    for (const auto& [program, limits] : plans) need.include(CpuPlan(program, limits, team_.size()), options_.isa);
    return need.bytes(team_.size());
  }
  void set_timing(bool on) override { timing_ = on; }
  std::span<const graph::OpTime> timing() const override { return times_; }

 private:
  // In the arena, from the cache or packed.
  PackCache::Found packed(const PackedTensor& w, std::string_view name) {
    if (cache_)
      if (std::optional<PackCache::Found> kept = cache_->find(name, w, &team_)) return *std::move(kept);
    const WeightArena::Piece piece = arena_.take(Matrix::packed_bytes(w.format, w.N, w.K));
    Matrix::pack_into(w, piece.bytes, &team_);
    PackCache::Found made{Matrix::view(piece.bytes, piece.owner), count_bad(w)};
    if (cache_) cache_->add(name, made.matrix, made.nonfinite);
    return made;
  }

  // Of a table that stays in its file: read once, then known.
  int64_t checked(const PackedTensor& w, std::string_view name) {
    if (cache_)
      if (const std::optional<int64_t> known = cache_->checked(name, w)) return *known;
    const int64_t bad = count_bad(w);
    if (cache_) cache_->add_checked(name, w, bad);
    return bad;
  }

  // Scales and plain values that are NaN or infinite, counted by all members.
  int64_t count_bad(const PackedTensor& w) {
    std::vector<int64_t> counts(static_cast<size_t>(team_.size()));
    team_.run([&](int member) {
      const int64_t begin = w.N * member / team_.size(), end = w.N * (member + 1) / team_.size();
      counts[static_cast<size_t>(member)] = count_nonfinite(w, begin, end);
    });
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  }

  // Handles -> weights, and that each weight was loaded in the layouts that its readers need.
  void bind(const CpuPlan& plan, const graph::Bindings& bindings) {
    const graph::Program& program = plan.program();
    bound_.clear();
    for (size_t i = 0; i < program.weights.size(); ++i) {
      const graph::ValueInfo& value = program.value(program.weights[i]);
      const int32_t id = bindings.weights[i].id;
      if (id < 0 || id >= static_cast<int32_t>(weights_.size()) || !weights_[static_cast<size_t>(id)])
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
  WorkspaceNeed need_;
  Workspace space_;
  AdapterRows adapters_;
  WeightArena arena_;
  std::unique_ptr<PackCache> cache_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<const Weight*> bound_;  // of the run, as Program::weights
  int64_t bytes_ = 0;
  std::vector<graph::BadWeight> bad_;
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
