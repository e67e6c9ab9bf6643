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

// The same for adapters that come and go: a lora by slot behind every linear over all rows of a step. Their factors are
// no weights, Bindings::adapters has them; a row whose sequence has no adapter keeps the linear's bits. The linears
// become Program::adapter_modules, in order.
Program with_adapter_slots(const Program& program);

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
struct MemoryRules {
  int64_t bytes_per_value = 4;       // 0: by each value's dtype
  bool results = true;               // false: results live elsewhere
  bool linear_add_in_place = false;  // a linear_add writes over its summand where nothing reads that afterwards
  // Likewise a lora by slot over its y, and an add or gated_act over its first operand: adapters stand between linears
  // and these, which would be one fused op otherwise.
  bool adapted_in_place = false;
};
struct MemoryMap {
  std::vector<int64_t> offset;  // by ValueId, bytes, multiples of 64; -1: no arena memory
  int64_t bytes = 0;
};
MemoryMap plan_memory(const Program& program, const Limits& limits, const MemoryRules& rules = {});
int64_t rows_max(Rows rows, const Limits& limits);  // of a temp; 1 for fixed

}  // namespace hearth::graph
