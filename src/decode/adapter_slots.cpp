#include "decode/adapter_slots.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "graph/lora_layout.h"

namespace hearth::decode {
namespace {

PackedTensor f32(const std::vector<float>& values, int64_t cols) {
  return {.format = {.codec = Codec::f32},
          .N = static_cast<int64_t>(values.size()) / cols,
          .K = cols,
          .data = std::as_bytes(std::span(values)),
          .scales = {},
          .biases = {}};
}

int64_t values_a(int64_t K, int64_t R) { return graph::lora_rows_a(K, R) * graph::kLoraColumnsA; }
int64_t values_b(int64_t R, int64_t N) { return graph::lora_rows_b(R, N) * graph::kLoraColumnsB; }

std::string joined_id(AdapterStack stack) {
  std::string id;
  for (const formats::Adapter* adapter : stack) id += (id.empty() ? "" : "+") + adapter->id;
  return id;
}

// By module, what the stack does to it.
using Parts = std::map<std::string_view, std::vector<const formats::AdapterFactors*>>;
Parts parts_of(AdapterStack stack) {
  Parts parts;
  for (const formats::Adapter* adapter : stack)
    for (const formats::AdapterFactors& f : adapter->linears) parts[f.module].push_back(&f);
  return parts;
}

int64_t rank_of(std::span<const formats::AdapterFactors* const> parts) {
  int64_t R = 0;
  for (const formats::AdapterFactors* f : parts) R += f->R;
  return R;
}

}  // namespace

int64_t adapter_bytes(AdapterStack stack) {
  int64_t sum = 0;
  for (const auto& [module, parts] : parts_of(stack)) {
    const int64_t R = rank_of(parts);
    sum += values_a(parts.front()->K, R) + values_b(R, parts.front()->N);
  }
  return 4 * sum;
}

int64_t adapter_rank(AdapterStack stack) {
  int64_t most = 0;
  for (const auto& [module, parts] : parts_of(stack)) most = std::max(most, rank_of(parts));
  return most;
}

AdapterSlots::AdapterSlots(graph::Executor& executor, std::vector<graph::AdapterModule> modules, int64_t slots,
                           int64_t rank_max)
    : executor_(executor), modules_(std::move(modules)), rank_max_(rank_max) {
  slots_.resize(static_cast<size_t>(slots));
  factors_.resize(slots_.size() * modules_.size());
}

AdapterSlots::~AdapterSlots() { release(factors_); }

bool AdapterSlots::mounted(int32_t slot) const {
  return slot >= 0 && slot < size() && slots_[static_cast<size_t>(slot)].mounted;
}

void AdapterSlots::check(AdapterStack stack) const {
  HEARTH_CHECK(!stack.empty(), "no adapter");
  for (const auto& [name, parts] : parts_of(stack)) {
    const auto module = std::ranges::find(modules_, name, &graph::AdapterModule::name);
    for (const formats::AdapterFactors* f : parts)
      if (module == modules_.end() || module->N != f->N || module->K != f->K)
        fail(ErrorKind::invalid_argument, "adapter {}: {} is for [{}, {}], the model has {}", joined_id(stack), name,
             f->N, f->K, module == modules_.end() ? "no such linear" : fmt::format("[{}, {}]", module->N, module->K));
    if (const int64_t R = rank_of(parts); R > rank_max_)
      fail(ErrorKind::invalid_argument, "adapter {}: {} has rank {}, the engine has room for {}", joined_id(stack),
           name, R, rank_max_);
  }
}

// One adapter as it is; several side by side: A = [A1 A2], B = [B1; B2], each B times its scale.
graph::LoraFactors AdapterSlots::load(const graph::AdapterModule& module,
                                      std::span<const formats::AdapterFactors* const> parts) {
  const int64_t R = rank_of(parts);
  const bool alone = parts.size() == 1;
  std::vector<float> a(static_cast<size_t>(values_a(module.K, R))), b(static_cast<size_t>(values_b(R, module.N)));
  int64_t first = 0;  // rank at which a part begins
  for (const formats::AdapterFactors* f : parts) {
    const float factor = alone ? 1 : f->scale;
    for (int64_t k = 0; k < f->K; ++k)
      for (int64_t r = 0; r < f->R; ++r)
        a[static_cast<size_t>(graph::lora_index_a(module.K, k, first + r))] = f->a[static_cast<size_t>(k * f->R + r)];
    for (int64_t r = 0; r < f->R; ++r)
      for (int64_t n = 0; n < f->N; ++n)
        b[static_cast<size_t>(graph::lora_index_b(R, first + r, n))] = factor * f->b[static_cast<size_t>(r * f->N + n)];
    first += f->R;
  }
  graph::LoraFactors factors{.a = {}, .b = {}, .R = R, .scale = alone ? parts.front()->scale : 1.0f};
  factors.a = executor_.load(f32(a, graph::kLoraColumnsA), graph::LayoutHint::vector, module.name + ".lora_a");
  try {
    factors.b = executor_.load(f32(b, graph::kLoraColumnsB), graph::LayoutHint::vector, module.name + ".lora_b");
  } catch (...) {
    executor_.unload(factors.a);
    throw;
  }
  return factors;
}

void AdapterSlots::release(std::span<graph::LoraFactors> factors) {
  for (graph::LoraFactors& f : factors) {
    if (f.R == 0) continue;
    executor_.unload(f.a);
    executor_.unload(f.b);
    f = {};
  }
}

int32_t AdapterSlots::mount(AdapterStack stack, int64_t bytes_free) {
  check(stack);
  const auto slot = std::ranges::find(slots_, false, &Slot::mounted);
  if (slot == slots_.end())
    fail(ErrorKind::busy, "adapter {}: {} adapters are mounted, the engine holds no more", joined_id(stack),
         slots_.size());
  const int64_t bytes = adapter_bytes(stack);
  if (bytes > bytes_free)
    fail(ErrorKind::out_of_memory, "adapter {} takes {:.1f} MB, the memory budget leaves {:.1f} MB", joined_id(stack),
         static_cast<double>(bytes) / 1e6, static_cast<double>(std::max<int64_t>(0, bytes_free)) / 1e6);
  const Parts parts = parts_of(stack);
  std::vector<graph::LoraFactors> made(modules_.size());
  try {
    for (size_t i = 0; i < modules_.size(); ++i)
      if (const auto found = parts.find(modules_[i].name); found != parts.end())
        made[i] = load(modules_[i], found->second);
  } catch (...) {
    release(made);
    throw;
  }
  const auto index = slot - slots_.begin();
  std::ranges::copy(made, factors_.begin() + index * static_cast<int64_t>(modules_.size()));
  *slot = {.mounted = true, .id = joined_id(stack), .uses = 0, .bytes = bytes};
  bytes_ += bytes;
  return static_cast<int32_t>(index);
}

void AdapterSlots::unmount(int32_t slot) {
  if (!mounted(slot)) fail(ErrorKind::not_found, "adapter slot {} is empty", slot);
  Slot& s = slots_[static_cast<size_t>(slot)];
  if (s.uses > 0)
    fail(ErrorKind::busy, "adapter {}: {} request{} use{} it", s.id, s.uses, s.uses == 1 ? "" : "s",
         s.uses == 1 ? "s" : "");
  release(std::span(factors_).subspan(static_cast<size_t>(slot) * modules_.size(), modules_.size()));
  bytes_ -= s.bytes;
  s = {};
}

}  // namespace hearth::decode
