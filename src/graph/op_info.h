// One row a kind: type rule, cost, reference (the meaning of the op), gradient, expansion of fused kinds.
#pragma once
#include <span>
#include <string_view>

#include "base/error.h"
#include "graph/batch.h"
#include "graph/kv.h"
#include "graph/program.h"
#include "tensor/packed.h"

namespace hearth::graph {

class Builder;

// An op seen in its program.
struct OpView {
  const Program& program;
  const Op& op;

  size_t ins() const { return op.in.size(); }
  bool has(size_t i) const { return i < op.in.size() && op.in[i] != kNone; }
  const ValueInfo& in(size_t i) const { return program.value(op.in[i]); }
  const ValueInfo& out(size_t i = 0) const { return program.value(op.out[i]); }
  const Attrs& attrs() const { return op.attrs; }
};

// Throws Error{corrupt_file} "<kind> <name>: <message>" when the condition does not hold.
template <class... Args>
void require(bool condition, const OpView& v, fmt::format_string<Args...> format, Args&&... args);

struct Cost {
  int64_t bytes_weights = 0;  // read once a step
  int64_t bytes = 0;          // activations and KV, read and written
  int64_t flops = 0;          // multiply and add count 2
};

// A value in the reference executor: weights stay packed (matrix) or plain (vector), temps are [rows, cols] floats.
struct RefValue {
  int64_t rows = 0, cols = 0;
  std::vector<float> data;
  const PackedTensor* packed = nullptr;

  float* row(int64_t m) { return data.data() + m * cols; }
  const float* row(int64_t m) const { return data.data() + m * cols; }
};
// The factors of one slot and module; null: the module is as the model has it.
struct RefFactors {
  const PackedTensor *a = nullptr, *b = nullptr;
  float scale = 1;
  int64_t R = 0;
};
struct RefCall {
  const Program& program;
  const Op& op;
  const BatchView& batch;
  HostKv* kv;                  // null without cache
  std::span<RefValue> values;  // by ValueId; results are already sized
  int64_t threads;
  std::span<const RefFactors> adapters = {};  // as Bindings::adapters

  const RefValue& in(size_t i) const { return values[static_cast<size_t>(op.in[i])]; }
  bool has(size_t i) const { return i < op.in.size() && op.in[i] != kNone; }
  RefValue& out(size_t i = 0) const { return values[static_cast<size_t>(op.out[i])]; }
  float r(float x) const { return round_to(program.activation, x); }  // r() of DESIGN 4.2
};

using InferRule = std::vector<ValueInfo> (*)(const OpView&);  // types of the results; throws Error
using CostRule = Cost (*)(const OpView&, const Extents&);
using ReferenceFn = void (*)(const RefCall&);
using GradientRule = void (*)(Builder&, const OpView&, std::span<const ValueId> dy);
using ExpandRule = void (*)(Builder&, const OpView&);  // emits the plain ops, writing op.out

struct OpInfo {
  std::string_view name;
  InferRule infer;
  CostRule cost;
  ReferenceFn reference;
  GradientRule gradient = nullptr;  // null: not differentiable
  ExpandRule expand = nullptr;      // fused kinds only
};

const OpInfo& info(OpKind kind);
Cost cost(const Program& program, const Op& op, const Extents& extents);
Cost cost(const Program& program, const Extents& extents);  // the sum over all ops
int64_t weight_bytes(const ValueInfo& value);               // ValueInfo::bytes, else 4 bytes a value

// The table's row that embed takes for row m of the step. Shared by every executor.
int64_t embed_row(const Attrs& attrs, const BatchView& batch, int64_t m);

// inv_freq[i] of a row at `position`, with the dynamic rule applied. Shared by every executor.
float rope_inv_freq(const RopeSpec& spec, int32_t position, int64_t i);

template <class... Args>
void require(bool condition, const OpView& v, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition)
    fail(ErrorKind::corrupt_file, "{} {}: {}", info(v.op.kind).name, v.op.name,
         fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hearth::graph
