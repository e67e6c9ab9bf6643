#include "cpu/workspace.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace hearth::cpu {
namespace {

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

void Buffer::Free::operator()(std::byte* p) const { std::free(p); }

void Buffer::reserve(int64_t bytes, const char* what) {
  const int64_t wanted = round_up(std::max<int64_t>(bytes, 64), 64);
  if (wanted <= bytes_) return;
  data_.reset();
  bytes_ = 0;
  void* p = std::aligned_alloc(64, static_cast<size_t>(wanted));
  if (!p) fail(ErrorKind::out_of_memory, "cpu: no memory for {} ({} bytes)", what, wanted);
  data_.reset(static_cast<std::byte*>(p));
  std::memset(p, 0, static_cast<size_t>(wanted));
  bytes_ = wanted;
}

void Buffer::poison() const {
  if (bytes_ > 0) std::memset(data_.get(), 0xff, static_cast<size_t>(bytes_));
}

int64_t attention_rows_max(const AttentionShape& shape) { return std::max(kJobRows, shape.group()); }

int64_t attention_scratch_bytes(int64_t Dh, int64_t rows) {
  const int64_t ld = round_up(Dh, 16), padded = round_up(rows, 16);
  return 4 * (rows * (3 * ld + kChunkPositions) + kTilePositions * ld + 6 * padded);
}

AttentionScratch MemberSpace::attention_for(int64_t Dh, int64_t rows) const {
  const int64_t ld = round_up(Dh, 16), padded = round_up(rows, 16);
  float* p = attention.floats();
  const auto take = [&](int64_t n) { return std::exchange(p, p + n); };
  AttentionScratch s;
  s.q = take(rows * ld);
  s.tile = take(kTilePositions * ld);
  s.z = take(rows * kChunkPositions);
  s.chunk_out = take(rows * ld);
  s.out = take(rows * ld);
  s.chunk_top = take(padded);
  s.chunk_total = take(padded);
  s.top = take(padded);
  s.total = take(padded);
  s.low = reinterpret_cast<int32_t*>(take(padded));
  s.high = reinterpret_cast<int32_t*>(take(padded));
  return s;
}

void Workspace::fit(const CpuPlan& plan, Isa isa) {
  const int64_t K = round_up(std::max<int64_t>(plan.K_max(), 32), 32);
  const int64_t row =
      std::max(act_row_bytes(plan.core(), K, isa), act_row_bytes(plan.core(graph::Rows::gathered), K, isa));
  shared.reserve(4 * std::max(plan.few().shared_floats, plan.many().shared_floats), "the arena");
  slot_bytes = std::max(slot_bytes, round_up(row * plan.many().rows_max, 64));
  activations.reserve(slot_bytes * kActSlots, "activations");
  int64_t partial = 0, attention = 0;
  for (const AttentionSchedule& schedule : plan.schedules()) {
    partial = std::max(partial, schedule.slots_max() * schedule.slot_floats());
    attention = std::max(attention, attention_scratch_bytes(schedule.shape().Dh, attention_rows_max(schedule.shape())));
  }
  partials.reserve(4 * partial, "attention partials");
  for (MemberSpace& m : members) {
    m.own.reserve(4 * plan.few().own_floats, "a thread's values");
    m.slot_bytes = std::max(m.slot_bytes, round_up(row * plan.few().rows_max, 64));
    m.activations.reserve(m.slot_bytes * kActSlots, "a thread's activations");
    m.linear.reserve(linear_scratch_bytes(plan.many().rows_max, K), "scratch of matrix products");
    m.temp.reserve(4 * plan.temp_floats(), "scratch");
    m.attention.reserve(attention, "scratch of attention");
  }
}

void Workspace::poison() const {
  for (const Buffer* b : {&shared, &activations, &partials}) b->poison();
  for (const MemberSpace& m : members)
    for (const Buffer* b : {&m.own, &m.activations, &m.linear, &m.temp, &m.attention}) b->poison();
}

}  // namespace hearth::cpu
