// The rows of a step that have an adapter, grouped by slot, and the factors of those slots. Made anew for each run.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/plan.h"
#include "graph/executor.h"

namespace hearth::cpu {

struct Weight;

// Engine thread only, while it is built; all members read it.
class AdapterRows {
 public:
  struct Group {
    int32_t slot = 0;
    int64_t begin = 0, end = 0;  // of rows()
  };
  struct Factors {
    const float *a = nullptr, *b = nullptr;  // null: the slot leaves the module alone
    int64_t R = 0;
    float scale = 1;
  };

  void reserve(const graph::Program& program, const graph::Limits& limits);

  // Throws Error{invalid_argument} for factors that do not fit their module or the plan's limits. Allocates nothing.
  void build(const CpuPlan& plan, const graph::Bindings& bindings, std::span<const std::unique_ptr<Weight>> weights);

  bool empty() const { return groups_.empty(); }
  std::span<const int32_t> rows() const { return rows_; }  // ascending inside a group
  std::span<const Group> groups() const { return groups_; }
  const Factors& factors(int32_t slot, int32_t module) const {
    return factors_[static_cast<size_t>(slot) * modules_ + static_cast<size_t>(module)];
  }

 private:
  size_t modules_ = 0;
  std::vector<int32_t> rows_;
  std::vector<Group> groups_;
  std::vector<Factors> factors_;
};

}  // namespace hearth::cpu
