// The only face of a backend. One thread calls it: the engine thread (DESIGN 5).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/batch.h"
#include "graph/kv.h"
#include "graph/program.h"
#include "tensor/packed.h"

namespace hearth::graph {

enum class Numerics : uint8_t { parity, deterministic, fast };  // DESIGN 7
std::string_view name_of(Numerics numerics);
Numerics parse_numerics(std::string_view name);  // Error{invalid_argument} with the list

struct Limits {
  int64_t rows_max = 1, sequences_max = 1, positions_max = 0;
  int64_t gathered_max = 1;  // rows of the head
  Numerics numerics = Numerics::deterministic;
  int64_t adapter_slots = 0, adapter_rank_max = 0;  // of programs with adapter_modules
};

struct WeightHandle {
  int32_t id = -1;
};
enum class LayoutHint : uint8_t { matmul, gather, matmul_and_gather, vector };

class Plan {
 public:
  virtual ~Plan() = default;
  virtual const Program& program() const = 0;  // after the backend's fusions
  virtual int64_t arena_bytes() const = 0;
};

// What the adapter of a slot does to a module: y' = r(y + r(scale ((x A) B))). R = 0: nothing.
struct LoraFactors {
  // A [K, R], B [R, N], in the order of graph/lora_layout.h, loaded as `vector`
  WeightHandle a, b;
  int64_t R = 0;
  float scale = 1;
};

struct Bindings {
  std::span<const WeightHandle> weights;  // as Program::weights of the program that was prepared
  BatchView batch;
  KvStorage* kv = nullptr;                    // from the same executor
  std::span<const std::span<float>> results;  // one a result: [rows, cols] f32, host memory
  // [slots, Program::adapter_modules]; BatchView::adapter chooses the slot of a sequence.
  std::span<const LoraFactors> adapters = {};
};

struct DeviceInfo {
  std::string name;  // "cpu avx512, 2 threads"
  int64_t bytes_free = 0;
  std::vector<Numerics> numerics;
};

// Time of an op in the last run; for `probe step`.
struct OpTime {
  int32_t op = 0;  // index into Plan::program().ops
  double seconds = 0;
};

// A loaded weight with scales, biases or plain values that are NaN or infinite, and how many.
struct BadWeight {
  std::string name;
  int64_t count = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Takes a weight over: matmul layouts are repacked, so `w` need only live during the call; `gather` alone keeps the
  // view, which must outlive the executor. `name` is for messages. Throws Error{out_of_memory}.
  virtual WeightHandle load(const PackedTensor& w, LayoutHint hint, std::string_view name) = 0;
  // Forgets a loaded weight, whose handle may then be given again. Not one that a plan still runs with.
  virtual void unload(WeightHandle weight) = 0;
  virtual std::unique_ptr<Plan> prepare(const Program& program, const Limits& limits) = 0;
  virtual std::unique_ptr<KvStorage> make_kv(const Program& program, std::span<const int64_t> pages) = 0;
  virtual void run(Plan& plan, const Bindings& bindings) = 0;  // enqueues; allocates nothing
  virtual void wait() = 0;                                     // results are in place; throws device_lost

  // f(i) once for each i in [0, count), side by side where the executor has threads; returns when all are done. Between
  // runs: for what a step leaves to do on the host. f must not throw.
  virtual void for_each(int64_t count, const std::function<void(int64_t)>& f) {
    for (int64_t i = 0; i < count; ++i) f(i);
  }

  virtual DeviceInfo info() const = 0;
  virtual int64_t weight_bytes() const = 0;                    // memory of the loaded weights, after repack
  virtual int64_t working_bytes() const = 0;                   // of the prepared plans: arenas, scratch of threads
  virtual std::span<const BadWeight> bad_weights() const = 0;  // of all that were loaded, in their order

  // What weight_bytes() will grow by when such a weight is loaded (`stored`: its bytes in the file), and what
  // working_bytes() will be once each of these programs was prepared with its limits. Nothing is taken.
  struct WeightExtent {
    PackedFormat format;
    int64_t N = 0, K = 0, stored = 0;
  };
  virtual int64_t weight_need(const WeightExtent& weight, LayoutHint hint) const = 0;
  struct PlanExtent {
    const Program& program;
    Limits limits;
  };
  virtual int64_t working_need(std::span<const PlanExtent> plans) const = 0;

  virtual void set_timing(bool on) = 0;  // collect OpTime; off by default
  virtual std::span<const OpTime> timing() const = 0;
};

// Scalar and obvious: fp64 sums, rounding where DESIGN 4.2 rounds. Weights are kept as views.
std::unique_ptr<Executor> make_reference_executor(int threads);

}  // namespace hearth::graph
