// How attention is shared out over the members of a team: a pure function of the batch and the shape, made once a run
// for all layers of that shape. Results do not depend on it (kernels/attention.inl).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernel_table.h"
#include "graph/batch.h"

namespace hearth::cpu {

struct AttentionShape {
  int64_t H = 0, Hkv = 0, Dh = 0, window = 0;
  bool cached = true;  // else over the step's own rows
  bool operator==(const AttentionShape&) const = default;
  int64_t group() const { return H / Hkv; }
};

// Rows of a job: r = t * group + g stands for token t of the sequence and head kv_head * group + g.
inline constexpr int64_t kJobRows = 64, kSplitRows = 16;
int64_t job_tokens(const AttentionShape& shape);  // tokens of a full block of rows

struct AttentionJob {
  int32_t sequence = 0, kv_head = 0;
  int64_t row_begin = 0, row_end = 0;      // at most max(kJobRows, group)
  int64_t chunk_begin = 0, chunk_end = 0;  // absolute chunks of 256 positions
  int64_t partial = -1;                    // >= 0: slot of chunk_begin; the block's chunks are merged afterwards
};

// A block whose chunks went to several members: partial .. partial + chunks - 1 are merged ascending.
struct AttentionMerge {
  int32_t sequence = 0, kv_head = 0;
  int64_t row_begin = 0, row_end = 0;  // at most kSplitRows
  int64_t partial = 0, chunks = 0;
};

// Visible cached indices [first, last) of token t of sequence b.
struct Visible {
  int64_t first, last;
};
Visible visible(const graph::BatchView& batch, const AttentionShape& shape, int64_t b, int64_t t);

class AttentionSchedule {
 public:
  // Room for every batch within these numbers; build() allocates nothing.
  AttentionSchedule(const AttentionShape& shape, int64_t rows_max, int64_t sequences_max, int64_t positions_max,
                    int members);

  void build(const graph::BatchView& batch) noexcept;

  const AttentionShape& shape() const { return shape_; }
  std::span<const AttentionJob> jobs(int member) const {
    const auto at = static_cast<size_t>(member);
    return std::span(jobs_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }
  std::span<const AttentionMerge> merges() const { return merges_; }

  // Floats of a slot: kSplitRows rows of ld = Dh rounded up to 16, then their tops and totals.
  int64_t slot_floats() const { return kSplitRows * ((shape_.Dh + 15) / 16 * 16 + 2); }
  int64_t slots_max() const { return slots_max_; }

 private:
  AttentionShape shape_;
  int members_;
  int64_t slots_max_ = 0;
  std::vector<AttentionJob> jobs_;
  std::vector<AttentionMerge> merges_;
  std::vector<size_t> begin_;  // [members + 1]
};

}  // namespace hearth::cpu
