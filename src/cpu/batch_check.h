// Checks a run's bindings against its plan, so that kernels need not.
#pragma once
#include "cpu/plan.h"
#include "graph/kv.h"

namespace hearth::cpu {

// Throws Error{invalid_argument} naming field and numbers. Allocates nothing when all is well.
void check_batch(const CpuPlan& plan, const graph::Bindings& bindings, const graph::HostKv* kv);

}  // namespace hearth::cpu
