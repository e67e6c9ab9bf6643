#include "cpu/attention_schedule.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::cpu {
namespace {

constexpr int64_t kTileRows = 4;     // decoding a tile costs about as much as so many rows of products
constexpr int64_t kSplitChunks = 4;  // blocks of fewer chunks are split by rows where they have several

// Rows of one sequence and KV head that are worked on together.
struct RowBlock {
  AttentionJob job;
  int64_t first_tile, last_tile;  // visible tiles [first, last)

  int64_t rows() const { return job.row_end - job.row_begin; }
  int64_t cost(int64_t rows, int64_t chunk_begin, int64_t chunk_end) const {
    const int64_t begin = std::max(first_tile, chunk_begin * kChunkTiles);
    const int64_t end = std::min(last_tile, chunk_end * kChunkTiles);
    return std::max<int64_t>(0, end - begin) * (rows + kTileRows);
  }
  int64_t cost() const { return cost(rows(), job.chunk_begin, job.chunk_end); }
  bool by_chunks() const {
    const int64_t chunks = job.chunk_end - job.chunk_begin;
    return rows() <= kSplitRows && (chunks >= kSplitChunks || (rows() == 1 && chunks > 1));
  }
};

template <class Visit>
void for_blocks(const graph::BatchView& batch, const AttentionShape& shape, const Visit& visit) {
  const int64_t tokens = job_tokens(shape), group = shape.group();
  for (int64_t b = 0; b < batch.B(); ++b) {
    const int64_t T = batch.row_begin[static_cast<size_t>(b + 1)] - batch.row_begin[static_cast<size_t>(b)];
    for (int64_t h = 0; h < shape.Hkv; ++h)
      for (int64_t t = 0; t < T; t += tokens) {
        const int64_t end = std::min(T, t + tokens);
        const Visible low = visible(batch, shape, b, t), high = visible(batch, shape, b, end - 1);
        visit(RowBlock{.job = {.sequence = static_cast<int32_t>(b),
                               .kv_head = static_cast<int32_t>(h),
                               .row_begin = t * group,
                               .row_end = end * group,
                               .chunk_begin = low.first / kChunkPositions,
                               .chunk_end = (high.last + kChunkPositions - 1) / kChunkPositions},
                       .first_tile = low.first / kTilePositions,
                       .last_tile = (high.last + kTilePositions - 1) / kTilePositions});
      }
  }
}

}  // namespace

int64_t job_tokens(const AttentionShape& shape) {
  const int64_t rows = shape.Dh > 128 ? kJobRows / 2 : kJobRows;
  return std::max<int64_t>(1, rows / shape.group());
}

Visible visible(const graph::BatchView& batch, const AttentionShape& shape, int64_t b, int64_t t) {
  const int64_t T = batch.row_begin[static_cast<size_t>(b + 1)] - batch.row_begin[static_cast<size_t>(b)];
  const int64_t total = shape.cached ? batch.kv_len[static_cast<size_t>(b)] : T;
  const int64_t own = total - T + t;
  return {.first = shape.window > 0 ? std::max<int64_t>(0, own - shape.window + 1) : 0,
          .last = batch.mask(b) == graph::MaskKind::full ? total : own + 1};
}

AttentionSchedule::AttentionSchedule(const AttentionShape& shape, int64_t rows_max, int64_t sequences_max,
                                     int64_t positions_max, int members)
    : shape_(shape), members_(members), begin_(static_cast<size_t>(members) + 1, 0) {
  const int64_t blocks = shape.Hkv * (rows_max / job_tokens(shape) + sequences_max);
  jobs_.reserve(static_cast<size_t>(blocks + members));
  merges_.reserve(static_cast<size_t>(members));
  const int64_t chunks = (std::max(positions_max, rows_max) + kChunkPositions - 1) / kChunkPositions + 1;
  slots_max_ = members > 1 ? (members - 1) * chunks : 0;
}

void AttentionSchedule::build(const graph::BatchView& batch) noexcept {
  jobs_.clear();
  merges_.clear();
  std::fill(begin_.begin(), begin_.end(), 0);
  int64_t total = 0, done = 0, slots = 0;
  for_blocks(batch, shape_, [&](const RowBlock& block) { total += block.cost(); });

  int member = 0;
  const auto next_member = [&] { begin_[static_cast<size_t>(++member)] = jobs_.size(); };
  const auto room = [&] { return member + 1 == members_ ? INT64_MAX : total * (member + 1) / members_ - done; };
  for_blocks(batch, shape_, [&](RowBlock block) {
    const AttentionJob whole = block.job;
    const bool by_chunks = block.by_chunks();
    bool split = false;
    for (;;) {
      const int64_t cost = block.cost();
      AttentionJob part = block.job;
      if (cost > room()) {
        if (by_chunks) {
          part.chunk_end = part.chunk_begin;
          while (part.chunk_end < block.job.chunk_end &&
                 block.cost(block.rows(), part.chunk_begin, part.chunk_end + 1) <=
                     room() + 2 * (block.rows() + kTileRows))
            ++part.chunk_end;
        } else {
          part.row_end = part.row_begin + std::max<int64_t>(0, room() * block.rows() / cost);
        }
      }
      const bool some = part.row_end > part.row_begin && part.chunk_end > part.chunk_begin;
      const bool rest = part.row_end < block.job.row_end || part.chunk_end < block.job.chunk_end;
      if (some) {
        if (by_chunks && (rest || split)) {
          split = true;
          part.partial = slots + part.chunk_begin - whole.chunk_begin;
        }
        jobs_.push_back(part);
        RowBlock taken = block;
        taken.job = part;
        done += taken.cost();
      }
      if (!rest) break;
      if (by_chunks) block.job.chunk_begin = part.chunk_end;
      else block.job.row_begin = part.row_end;
      next_member();
    }
    if (split) {
      const int64_t chunks = whole.chunk_end - whole.chunk_begin;
      merges_.push_back({whole.sequence, whole.kv_head, whole.row_begin, whole.row_end, slots, chunks});
      slots += chunks;
    }
  });
  while (member < members_) next_member();
  HEARTH_CHECK(slots <= slots_max_, "{} attention slots, {} planned", slots, slots_max_);
}

}  // namespace hearth::cpu
