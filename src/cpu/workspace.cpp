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

int64_t Buffer::taken(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 64), 64); }

void Buffer::reserve(int64_t bytes, const char* what) {
  const int64_t wanted = taken(bytes);
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

void WorkspaceNeed::include(const CpuPlan& plan, Isa isa) {
  const auto grow = [](int64_t& bytes, int64_t wanted) { bytes = std::max(bytes, wanted); };
  const int64_t K = round_up(std::max<int64_t>(plan.K_max(), 32), 32);
  const int64_t row =
      std::max(act_row_bytes(plan.core(), K, isa), act_row_bytes(plan.core(graph::Rows::gathered), K, isa));
  grow(shared, 4 * std::max(plan.few().shared_floats, plan.many().shared_floats));
  grow(slot, round_up(row * plan.many().rows_max, 64));
  for (const AttentionSchedule& schedule : plan.schedules()) {
    grow(partials, 4 * schedule.slots_max() * schedule.slot_floats());
    grow(member.attention, attention_scratch_bytes(schedule.shape().Dh, attention_rows_max(schedule.shape())));
  }
  grow(member.own, 4 * plan.few().own_floats);
  grow(member.slot, round_up(row * plan.few().rows_max, 64));
  grow(member.linear, linear_scratch_bytes(plan.many().rows_max, K));
  grow(member.temp, 4 * plan.temp_floats());
  if (plan.lora_stride() == 0) return;
  grow(lora_stride, plan.lora_stride());
  grow(lora_rows, plan.limits().rows_max);
}

int64_t WorkspaceNeed::bytes(int64_t members) const {
  const auto taken = [](int64_t bytes) { return Buffer::taken(bytes); };
  return taken(shared) + taken(slot * kActSlots) + taken(partials) + taken(8 * lora_floats()) +
         members * (taken(4 * kFewRows * lora_stride) + taken(member.own) + taken(member.slot * kActSlots) +
                    taken(member.linear) + taken(member.temp) + taken(member.attention));
}

void Workspace::fit(const WorkspaceNeed& need) {
  shared.reserve(need.shared, "the arena");
  slot_bytes = need.slot;
  activations.reserve(slot_bytes * kActSlots, "activations");
  partials.reserve(need.partials, "attention partials");
  lora_stride = need.lora_stride;
  lora_floats = need.lora_floats();
  lora.reserve(8 * lora_floats, "products of adapters");
  for (MemberSpace& m : members) {
    m.own.reserve(need.member.own, "a thread's values");
    m.slot_bytes = need.member.slot;
    m.activations.reserve(m.slot_bytes * kActSlots, "a thread's activations");
    m.linear.reserve(need.member.linear, "scratch of matrix products");
    m.temp.reserve(need.member.temp, "scratch");
    m.attention.reserve(need.member.attention, "scratch of attention");
    m.lora.reserve(4 * kFewRows * lora_stride, "products of adapters");
  }
}

int64_t Workspace::bytes() const {
  int64_t sum = shared.bytes() + activations.bytes() + partials.bytes() + lora.bytes();
  for (const MemberSpace& m : members)
    sum += m.own.bytes() + m.activations.bytes() + m.linear.bytes() + m.temp.bytes() + m.attention.bytes() +
           m.lora.bytes();
  return sum;
}

void Workspace::poison() const {
  for (const Buffer* b : {&shared, &activations, &partials, &lora}) b->poison();
  for (const MemberSpace& m : members)
    for (const Buffer* b : {&m.own, &m.activations, &m.linear, &m.temp, &m.attention, &m.lora}) b->poison();
}

}  // namespace hearth::cpu
