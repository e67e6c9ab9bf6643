// The adapters that an engine holds: each in a slot, its factors loaded into the executor (spec server 38).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/adapter.h"
#include "graph/executor.h"

namespace hearth::decode {

// Slots of StepInput and Request; a mounted adapter's are 0 and above.
inline constexpr int32_t kNoAdapter = -1;       // the base model
inline constexpr int32_t kDefaultAdapter = -2;  // what Engine::default_adapter() says

using AdapterStack = std::span<const formats::Adapter* const>;

// Bytes that a stack takes once it is mounted, on any executor; for sizes before the load.
int64_t adapter_bytes(AdapterStack stack);
int64_t adapter_rank(AdapterStack stack);  // largest sum of ranks at a module

// Engine thread only. The executor must outlive it.
class AdapterSlots {
 public:
  AdapterSlots(graph::Executor& executor, std::vector<graph::AdapterModule> modules, int64_t slots, int64_t rank_max);
  ~AdapterSlots();
  AdapterSlots(const AdapterSlots&) = delete;
  AdapterSlots& operator=(const AdapterSlots&) = delete;

  // As Engine::mount_adapter; bytes_free is what the memory budget leaves.
  int32_t mount(AdapterStack stack, int64_t bytes_free);
  void unmount(int32_t slot);  // Error{busy} while it is used

  bool mounted(int32_t slot) const;
  const std::string& id(int32_t slot) const { return slots_[static_cast<size_t>(slot)].id; }
  int64_t uses(int32_t slot) const { return slots_[static_cast<size_t>(slot)].uses; }
  void use(int32_t slot, int64_t by) { slots_[static_cast<size_t>(slot)].uses += by; }
  int64_t bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  std::span<const graph::LoraFactors> factors() const { return factors_; }  // [slots, modules]

 private:
  struct Slot {
    bool mounted = false;
    std::string id;
    int64_t uses = 0, bytes = 0;
  };
  void check(AdapterStack stack) const;
  graph::LoraFactors load(const graph::AdapterModule& module, std::span<const formats::AdapterFactors* const> parts);
  void release(std::span<graph::LoraFactors> factors);

  graph::Executor& executor_;
  std::vector<graph::AdapterModule> modules_;
  int64_t rank_max_;
  std::vector<Slot> slots_;
  std::vector<graph::LoraFactors> factors_;
  int64_t bytes_ = 0;
};

}  // namespace hearth::decode
