// Pure functions from Program to Program (or to a map), testable without a device (DESIGN 4.3).
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "graph/program.h"

namespace hearth::graph {

// linear -> linear + lora, for the modules named in sites. Weights "<module>.lora_a" [K, R] and "<module>.lora_b" [R,
// N].
struct AdapterSite {
  std::string module;
  int64_t R = 0;
  float scale = 1;
};
Program with_adapters(const Program& program, std::span<const AdapterSite> sites);

// Adds values (by op name) to the results. Throws Error{not_found} for an unknown name.
Program with_taps(const Program& program, std::span<const std::string> op_names);

// Which fusions a backend wants. Each fused op is undone by expand(), and fuse() never changes a result by more than
// the roundings that the fused kind's definition states.
struct FuseRules {
  bool multi_linear = false;  // linears of the same input, adjacent
  bool gate_up_act = false;   // act(gate(x)) * up(x)
  bool linear_add = false;    // x + linear(y)
};
Program fuse(const Program& program, const FuseRules& rules);
Program expand(const Program& program);  // every fused op by its plain ops

// Lifetimes -> offsets in one arena. Values of weights and slices get no memory of their own.
struct MemoryMap {
  std::vector<int64_t> offset;  // by ValueId; -1: no arena memory
  int64_t bytes = 0;
};
MemoryMap plan_memory(const Program& program, const Limits& limits);

}  // namespace hearth::graph
