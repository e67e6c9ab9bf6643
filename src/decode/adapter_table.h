// The adapters of an engine by their names: those that are mounted, and stacks of them, made when a request first names
// one (spec server 38).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/engine.h"
#include "formats/adapter.h"

namespace hearth::decode {

// What a request asked for. `space` stands for the bits of the factors: what is cached under it stays true whatever is
// mounted later; empty for the base model.
struct AdapterChoice {
  int32_t slot = kNoAdapter;
  std::string space;
};

// Engine thread only. Adapters and stacks share the engine's slots and the bytes; a stack that nobody uses makes room
// for others, the one used longest ago first. The engine must outlive the table, and has no adapters but its own.
class AdapterTable {
 public:
  // bytes_max: of factors in their slots and of the copies that stacks are made from. `model` is for sentences.
  AdapterTable(Engine& engine, std::string model, int64_t bytes_max);

  // Throws, and nothing mounted has changed: Error{invalid_argument} for an id that is taken and as
  // Engine::mount_adapter, Error{busy} when all slots are in use, Error{out_of_memory} with both numbers. `digest`
  // names the content of its files.
  void mount(formats::Adapter adapter, std::string digest);
  void set_default(const std::string& id);  // a mounted one

  // Who asks next gets it no longer; `gone` is called, by settle(), when the last request that uses it has ended.
  // Throws Error{not_found}.
  void unmount(const std::string& id, std::function<void()> gone);
  void settle();  // between steps

  // "": the default one, "none": the base model, "a", or "a+b": a stack, the same in any order. Throws
  // Error{invalid_argument} with the names there are for an unknown one, one that stands there twice, ranks beyond a
  // slot's; Error{not_found} for one that is being unmounted; Error{busy} and Error{out_of_memory} when a stack finds
  // no room.
  AdapterChoice choose(std::string_view spec);

  struct Use {
    std::string id;
    int64_t requests = 0;  // that use it now, alone or in a stack
  };
  std::vector<Use> uses() const;
  int64_t bytes() const;  // taken of bytes_max

 private:
  struct Mounted {
    formats::Adapter adapter;
    std::string digest;
    int32_t slot = kNoAdapter;
    std::function<void()> gone;  // set: it is being unmounted
  };
  struct Stack {
    std::vector<std::string> ids;  // ascending
    int32_t slot = kNoAdapter;
    uint64_t used = 0;
  };
  const Mounted& find(const std::string& id) const;
  std::vector<std::string> parts_of(std::string_view spec) const;
  void make_room(const std::string& what, int64_t bytes);
  std::vector<Stack>::iterator oldest_idle();
  int64_t stack_bytes(const Stack& stack) const;
  int64_t requests(const std::string& id, const Mounted& mounted) const;
  std::string names() const;

  Engine& engine_;
  std::string model_;
  int64_t bytes_max_;
  std::map<std::string, Mounted> mounted_;
  std::vector<Stack> stacks_;
  std::string default_;  // empty: the base model
  uint64_t clock_ = 0;
};

}  // namespace hearth::decode
