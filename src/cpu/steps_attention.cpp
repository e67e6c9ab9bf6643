#include <algorithm>
#include <cstring>

#include "cpu/linear/heuristics.h"
#include "cpu/steps.h"

namespace hearth::cpu {
namespace {

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Reads rows of one head, from pages or from this step's own k and v.
struct Source {
  const Run& run;
  const Step& step;
  const AttentionShape& shape;
  const float *k = nullptr, *v = nullptr;  // without a cache
  graph::KvFormat format = graph::KvFormat::f32;

  Source(const Run& r, const Step& s, int member)
      : run(r), step(s), shape(r.plan.schedules()[static_cast<size_t>(s.schedule)].shape()) {
    if (shape.cached) {
      format = run.kv->group_of(s.attrs.layer).format;
    } else {
      k = pointer(run, s.k, member);
      v = pointer(run, s.z, member);
    }
  }

  KvTile tile(graph::KvPart part, int64_t sequence, int64_t kv_head, int64_t first) const {
    if (shape.cached) {
      const graph::PageTable& table = run.batch().tables[static_cast<size_t>(run.kv->group_index(step.attrs.layer))];
      const int32_t page = table.pages[static_cast<size_t>(sequence * table.pages_max + first / kTilePositions)];
      const graph::KvBlock block = run.kv->block(step.attrs.layer, part, page, kv_head);
      return {block.data, block.scales, block.biases, shape.Dh};
    }
    const Ref& ref = part == graph::KvPart::key ? step.k : step.z;
    const float* base = part == graph::KvPart::key ? k : v;
    const int64_t row = run.batch().row_begin[static_cast<size_t>(sequence)] + first;
    return {reinterpret_cast<const std::byte*>(base + row * ref.stride + kv_head * shape.Dh), nullptr, nullptr,
            ref.stride};
  }
};

struct Rows {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Gathers the query rows of a job, [rows, Dh].
void gather_queries(const Run& run, const Step& s, const AttentionJob& job, const AttentionShape& shape, int member,
                    float* q) {
  const float* x = pointer(run, s.x, member);
  const int64_t group = shape.group(), first = run.batch().row_begin[static_cast<size_t>(job.sequence)];
  for (int64_t r = job.row_begin; r < job.row_end; ++r)
    std::copy_n(x + (first + r / group) * s.x.stride + (job.kv_head * group + r % group) * shape.Dh, shape.Dh,
                q + (r - job.row_begin) * shape.Dh);
}

void finish(const Run& run, const Step& s, const AttentionShape& shape, int64_t sequence, int64_t kv_head, int64_t r,
            const float* out, float total, int member) {
  const int64_t group = shape.group(), first = run.batch().row_begin[static_cast<size_t>(sequence)];
  float* y = pointer(run, s.y, member) + (first + r / group) * s.y.stride + (kv_head * group + r % group) * shape.Dh;
  run.kernels.finish_row(out, total, y, shape.Dh, s.r);
}

struct Slot {
  float *out, *top, *total;
};
Slot slot_at(const Run& run, const AttentionSchedule& schedule, int64_t slot) {
  const int64_t ld = round_up(schedule.shape().Dh, 16);
  float* out = run.space.partials.floats() + slot * schedule.slot_floats();
  return {out, out + kSplitRows * ld, out + kSplitRows * (ld + 1)};
}

void attend_job(const Run& run, const Step& s, const AttentionSchedule& schedule, const AttentionJob& job, int member) {
  const AttentionShape& shape = schedule.shape();
  const Source source(run, s, member);
  const int64_t rows = job.row_end - job.row_begin, ld = round_up(shape.Dh, 16), group = shape.group();
  const AttentionScratch scratch =
      run.space.members[static_cast<size_t>(member)].attention_for(shape.Dh, attention_rows_max(shape));
  gather_queries(run, s, job, shape, member, scratch.q);

  AttendChunk chunk{.rows = rows, .Dh = shape.Dh, .q = scratch.q, .ldq = shape.Dh};
  chunk.format = source.format;
  chunk.scale = s.attrs.scale;
  chunk.cap = s.attrs.cap;
  chunk.fetch = fetch_ahead(run.kernels.isa, cpu_maker()).tiles;
  chunk.low = scratch.low;
  chunk.high = scratch.high;
  chunk.tile = scratch.tile;
  chunk.z = scratch.z;
  if (job.partial < 0) {
    std::fill_n(scratch.top, rows, -__builtin_inff());
    std::fill_n(scratch.total, rows, 0.0f);
    std::fill_n(scratch.out, rows * ld, 0.0f);
  }
  for (int64_t c = job.chunk_begin; c < job.chunk_end; ++c) {
    const int64_t base = c * kChunkPositions;
    int64_t first = kChunkPositions, last = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const Visible v = visible(run.batch(), shape, job.sequence, (job.row_begin + r) / group);
      const int64_t low = std::clamp<int64_t>(v.first - base, 0, kChunkPositions);
      const int64_t high = std::clamp<int64_t>(v.last - base, 0, kChunkPositions);
      scratch.low[r] = static_cast<int32_t>(low);
      scratch.high[r] = static_cast<int32_t>(high);
      if (low < high) {
        first = std::min(first, low);
        last = std::max(last, high);
      }
    }
    for (int64_t t = first / kTilePositions; t * kTilePositions < last; ++t) {
      chunk.keys[t] = source.tile(graph::KvPart::key, job.sequence, job.kv_head, base + t * kTilePositions);
      chunk.values[t] = source.tile(graph::KvPart::value, job.sequence, job.kv_head, base + t * kTilePositions);
    }
    if (job.partial >= 0) {
      const Slot slot = slot_at(run, schedule, job.partial + c - job.chunk_begin);
      chunk.out = slot.out;
      chunk.top = slot.top;
      chunk.total = slot.total;
      run.kernels.attend_chunk(chunk);
      continue;
    }
    chunk.out = scratch.chunk_out;
    chunk.top = scratch.chunk_top;
    chunk.total = scratch.chunk_total;
    run.kernels.attend_chunk(chunk);
    for (int64_t r = 0; r < rows; ++r)
      run.kernels.merge_chunk(chunk.out + r * ld, chunk.top[r], chunk.total[r], scratch.out + r * ld, scratch.top[r],
                              scratch.total[r], shape.Dh);
  }
  if (job.partial >= 0) return;
  for (int64_t r = 0; r < rows; ++r)
    finish(run, s, shape, job.sequence, job.kv_head, job.row_begin + r, scratch.out + r * ld, scratch.total[r], member);
}

// Rows of all merges are dealt out in turn.
void merge_jobs(const Run& run, const Step& s, const AttentionSchedule& schedule, int member) {
  const AttentionShape& shape = schedule.shape();
  const AttentionScratch scratch =
      run.space.members[static_cast<size_t>(member)].attention_for(shape.Dh, attention_rows_max(shape));
  const int64_t ld = round_up(shape.Dh, 16);
  int64_t turn = 0;
  for (const AttentionMerge& merge : schedule.merges())
    for (int64_t r = merge.row_begin; r < merge.row_end; ++r) {
      if (turn++ % run.team.size() != member) continue;
      float top = -__builtin_inff(), total = 0;
      std::fill_n(scratch.out, ld, 0.0f);
      for (int64_t c = 0; c < merge.chunks; ++c) {
        const Slot slot = slot_at(run, schedule, merge.partial + c);
        const int64_t at = r - merge.row_begin;
        run.kernels.merge_chunk(slot.out + at * ld, slot.top[at], slot.total[at], scratch.out, top, total, shape.Dh);
      }
      finish(run, s, shape, merge.sequence, merge.kv_head, r, scratch.out, total, member);
    }
}

}  // namespace

void attention_step(const Run& run, const Step& s, int member) noexcept {
  const AttentionSchedule& schedule = run.plan.schedules()[static_cast<size_t>(s.schedule)];
  for (const AttentionJob& job : schedule.jobs(member)) attend_job(run, s, schedule, job, member);
  if (schedule.merges().empty()) return;
  run.team.barrier(member);
  merge_jobs(run, s, schedule, member);
}

// Rows and heads are dealt out evenly: unit m * Hkv + h.
void kv_append_step(const Run& run, const Step& s, int member) noexcept {
  const graph::BatchView& batch = run.batch();
  const int64_t Hkv = s.attrs.Hkv, Dh = s.attrs.Dh, M = batch.M(), n = run.team.size();
  const graph::PageTable& table = batch.tables[static_cast<size_t>(run.kv->group_index(s.attrs.layer))];
  const graph::KvFormat format = run.kv->group_of(s.attrs.layer).format;
  const float *k = pointer(run, s.x, member), *v = pointer(run, s.z, member);
  const auto store = [&](graph::KvPart part, int32_t page, int64_t h, int64_t slot, const float* x) {
    if (format != graph::KvFormat::bf16) return run.kv->store(s.attrs.layer, part, page, h, slot, x);
    std::byte* data = run.kv->block(s.attrs.layer, part, page, h).data;
    if (part == graph::KvPart::key) run.kernels.store_bf16_key(x, reinterpret_cast<uint32_t*>(data) + slot, Dh);
    else run.kernels.store_bf16_row(x, reinterpret_cast<uint16_t*>(data) + slot * Dh, Dh);
  };
  size_t b = 0;
  for (int64_t unit = M * Hkv * member / n; unit < M * Hkv * (member + 1) / n; ++unit) {
    const int64_t m = unit / Hkv, h = unit % Hkv;
    while (batch.row_begin[b + 1] <= m) ++b;
    const int64_t j = batch.kv_len[b] - (batch.row_begin[b + 1] - m);
    const int32_t page =
        table.pages[static_cast<size_t>(static_cast<int64_t>(b) * table.pages_max + j / kTilePositions)];
    store(graph::KvPart::key, page, h, j % kTilePositions, k + m * s.x.stride + h * Dh);
    store(graph::KvPart::value, page, h, j % kTilePositions, v + m * s.z.stride + h * Dh);
  }
}

}  // namespace hearth::cpu
