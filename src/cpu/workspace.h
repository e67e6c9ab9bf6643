// Memory of runs: one arena for all plans of an executor (they never run together) and each member's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/plan.h"

namespace hearth::cpu {

// 64-aligned bytes that only grow. Throws Error{out_of_memory}.
class Buffer {
 public:
  void reserve(int64_t bytes, const char* what);
  static int64_t taken(int64_t bytes);  // what a reserved buffer holds for so many bytes
  int64_t bytes() const { return bytes_; }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }
  std::byte* data() const { return data_.get(); }
  void poison() const;  // every fp32 a NaN

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  int64_t bytes_ = 0;
};

struct AttentionScratch {
  float *q, *tile, *z, *chunk_out, *out;
  float *chunk_top, *chunk_total, *top, *total;  // [rows]
  int32_t *low, *high;                           // [rows]
};

struct MemberSpace {
  Buffer own, activations, linear, temp, attention, lora;
  int64_t slot_bytes = 0;  // activations

  // The parts of `attention` for heads of Dh and up to `rows` query rows.
  AttentionScratch attention_for(int64_t Dh, int64_t rows) const;
};
int64_t attention_scratch_bytes(int64_t Dh, int64_t rows);
int64_t attention_rows_max(const AttentionShape& shape);

// Bytes of a workspace that serves every plan that was included.
struct WorkspaceNeed {
  int64_t shared = 0, partials = 0, slot = 0;  // slot: activations of one value
  int64_t lora_rows = 0, lora_stride = 0;      // of lora by slot's x A
  struct Member {
    int64_t own = 0, linear = 0, temp = 0, attention = 0, slot = 0;
  } member;

  void include(const CpuPlan& plan, Isa isa);
  int64_t bytes(int64_t members) const;
  int64_t lora_floats() const { return lora_rows * lora_stride; }
};

struct Workspace {
  Buffer shared, activations, partials;
  int64_t slot_bytes = 0;  // activations
  Buffer lora;             // two buffers of lora_floats
  int64_t lora_stride = 0, lora_floats = 0;
  std::vector<MemberSpace> members;

  void fit(const WorkspaceNeed& need);
  int64_t bytes() const;
  void poison() const;
};

}  // namespace hearth::cpu
