// Executes a step list. Everything is planned and checked before: nothing here throws or allocates.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
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
};

struct Run {
  const KernelTable& kernels;
  const CpuPlan& plan;
  const StepList& list;
  const graph::Bindings& bindings;
  const graph::HostKv* kv;
  std::span<const Weight* const> weights;  // as Program::weights
  const Workspace& space;
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

float* pointer(const Run& run, const Ref& ref, int member);

}  // namespace hearth::cpu
