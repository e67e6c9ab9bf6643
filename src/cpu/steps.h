// Executes a step list. Everything is planned and checked before: nothing here throws or allocates.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "cpu/adapter_rows.h"
#include "cpu/kernel_table.h"
#include "cpu/plan.h"
#include "cpu/workspace.h"
#include "graph/kv.h"

namespace hearth::cpu {

// A loaded weight: what its layout hint asked for.
struct Weight {
  Matrix matrix;             // matmul hints
  PackedTensor view;         // gather alone
  std::vector<float> dense;  // vector: [N, K]
  int64_t N = 0, K = 0;
  int64_t bytes = 0;  // as counted
};

struct Run {
  const KernelTable& kernels;
  const CpuPlan& plan;
  const StepList& list;
  const graph::Bindings& bindings;
  const graph::HostKv* kv;
  std::span<const Weight* const> weights;  // as Program::weights
  const Workspace& space;
  const AdapterRows& adapters;
  Team& team;
  double* seconds;  // [ops], member 0's clock; null: not timed

  const graph::BatchView& batch() const { return bindings.batch; }
  const graph::Program& program() const { return plan.program(); }
  int64_t rows(graph::Rows kind) const;
};

void run_steps(const Run& run, int member) noexcept;

// Attention over pages or over this step's k and v; has a barrier inside when blocks were split by chunks.
void attention_step(const Run& run, const Step& step, int member) noexcept;
void kv_append_step(const Run& run, const Step& step, int member) noexcept;

// lora by slot; has barriers inside where an adapter has many rows. `turn`: the member's own, 0 when a run begins.
void lora_slots_step(const Run& run, const Step& step, int member, int& turn) noexcept;

float* pointer(const Run& run, const Ref& ref, int member);

// A member's share of a step: rows and columns of y.
struct Part {
  int64_t m_begin, m_end, c_begin, c_end;
  int64_t cols() const { return c_end - c_begin; }
};
Part part_of_step(const Run& run, const Step& s, int member);

}  // namespace hearth::cpu
