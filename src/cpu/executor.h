// The CPU executor: Programs run as step lists (plan.h) by a team of spinning threads.
// Numerics (DESIGN 7): deterministic = 16-bit integer activations (Core::s16), fast = 8-bit ones (Core::s8), parity =
// the fp32 core with every rounding of DESIGN 4.2. All three are row-invariant, whatever the batch, the chunking, the
// pages, the threads and the instruction set: the same bits.
#pragma once
#include <memory>

#include "cpu/isa.h"
#include "cpu/pack_cache.h"
#include "graph/executor.h"

namespace hearth::cpu {

struct CpuOptions {
  int threads = 1;
  Isa isa = best_isa();
  // Repacked weights are kept here and read on the next load, when a folder is named. A cache that does not fit is
  // rebuilt; one that cannot be written is done without.
  PackCacheOptions pack_cache;
  bool poison = false;  // tests: every run starts with NaN in all memory that it may only write first
};

// Throws Error{invalid_argument} for threads < 1 or an instruction set that this CPU lacks.
//   load(): `vector` weights become fp32 (also lora's A and B), `gather` keeps the view, matmul hints are repacked.
//   make_kv() gives a graph::HostKv.
std::unique_ptr<graph::Executor> make_cpu_executor(const CpuOptions& options);

}  // namespace hearth::cpu
