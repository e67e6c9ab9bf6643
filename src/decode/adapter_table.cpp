#include "decode/adapter_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::decode {
namespace {

// Of an adapter that is mounted: its slot, and the copy that stacks are made from.
int64_t bytes_of(const formats::Adapter& adapter) {
  const formats::Adapter* const one[] = {&adapter};
  return adapter_bytes(one) + static_cast<int64_t>(sizeof(float)) * adapter.values();
}

std::string joined(const std::vector<std::string>& ids) { return fmt::format("{}", fmt::join(ids, "+")); }

double mb(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

AdapterTable::AdapterTable(Engine& engine, std::string model, int64_t bytes_max)
    : engine_(engine), model_(std::move(model)), bytes_max_(bytes_max) {}

int64_t AdapterTable::stack_bytes(const Stack& stack) const {
  std::vector<const formats::Adapter*> parts;
  for (const std::string& id : stack.ids) parts.push_back(&mounted_.at(id).adapter);
  return adapter_bytes(parts);
}

int64_t AdapterTable::bytes() const {
  int64_t sum = 0;
  for (const auto& [id, mounted] : mounted_) sum += bytes_of(mounted.adapter);
  for (const Stack& stack : stacks_) sum += stack_bytes(stack);
  return sum;
}

std::vector<AdapterTable::Stack>::iterator AdapterTable::oldest_idle() {
  auto oldest = stacks_.end();
  for (auto stack = stacks_.begin(); stack != stacks_.end(); ++stack)
    if (engine_.adapter_uses(stack->slot) == 0 && (oldest == stacks_.end() || stack->used < oldest->used))
      oldest = stack;
  return oldest;
}

// A free slot and so many bytes, at the cost of idle stacks; nothing goes where even that would not do.
void AdapterTable::make_room(const std::string& what, int64_t bytes) {
  int64_t idle = 0, idle_bytes = 0;
  for (const Stack& stack : stacks_)
    if (engine_.adapter_uses(stack.slot) == 0) ++idle, idle_bytes += stack_bytes(stack);
  const int64_t free = bytes_max_ - this->bytes();
  if (bytes > free + idle_bytes)
    fail(ErrorKind::out_of_memory, "adapter {} takes {:.1f} MB, of {:.1f} MB kept for adapters {:.1f} MB are free",
         what, mb(bytes), mb(bytes_max_), mb(std::max<int64_t>(0, free + idle_bytes)));
  const auto slots = engine_.options().adapter_slots;
  const auto taken = [&] { return static_cast<int64_t>(mounted_.size() + stacks_.size()); };
  if (taken() - idle >= slots)
    fail(ErrorKind::busy, "adapter {}: all {} slots for adapters and stacks are in use", what, slots);
  while (taken() == slots || bytes_max_ - this->bytes() < bytes) {
    const auto oldest = oldest_idle();
    engine_.unmount_adapter(oldest->slot);
    stacks_.erase(oldest);
  }
}

void AdapterTable::mount(formats::Adapter adapter, std::string digest) {
  const std::string id = adapter.id;
  if (const auto found = mounted_.find(id); found != mounted_.end())
    fail(found->second.gone ? ErrorKind::busy : ErrorKind::invalid_argument, "adapter {} is {} on {}", printable(id),
         found->second.gone ? "still being unmounted" : "mounted already", model_);
  make_room(printable(id), bytes_of(adapter));
  const int32_t slot = engine_.mount_adapter(adapter);
  mounted_.emplace(id,
                   Mounted{.adapter = std::move(adapter), .digest = std::move(digest), .slot = slot, .gone = nullptr});
}

void AdapterTable::set_default(const std::string& id) {
  find(id);
  default_ = id;
}

void AdapterTable::unmount(const std::string& id, std::function<void()> gone) {
  const auto found = mounted_.find(id);
  if (found == mounted_.end() || found->second.gone)
    fail(ErrorKind::not_found, "adapter {} is not mounted on {}", printable(id), model_);
  found->second.gone = std::move(gone);
  if (default_ == id) default_.clear();
}

int64_t AdapterTable::requests(const std::string& id, const Mounted& mounted) const {
  int64_t sum = engine_.adapter_uses(mounted.slot);
  for (const Stack& stack : stacks_)
    if (std::ranges::binary_search(stack.ids, id)) sum += engine_.adapter_uses(stack.slot);
  return sum;
}

void AdapterTable::settle() {
  for (auto each = mounted_.begin(); each != mounted_.end();) {
    const std::string& id = each->first;
    Mounted& mounted = each->second;
    if (!mounted.gone || requests(id, mounted) > 0) {
      ++each;
      continue;
    }
    std::erase_if(stacks_, [&](const Stack& stack) {
      if (!std::ranges::binary_search(stack.ids, id)) return false;
      engine_.unmount_adapter(stack.slot);
      return true;
    });
    engine_.unmount_adapter(mounted.slot);
    const std::function<void()> gone = std::move(mounted.gone);
    each = mounted_.erase(each);
    gone();
  }
}

std::string AdapterTable::names() const {
  std::vector<std::string> ids;
  for (const auto& [id, mounted] : mounted_)
    if (!mounted.gone) ids.push_back(printable(id));
  return ids.empty() ? "none is" : fmt::format("{} {}", fmt::join(ids, ", "), ids.size() == 1 ? "is" : "are");
}

const AdapterTable::Mounted& AdapterTable::find(const std::string& id) const {
  const auto found = mounted_.find(id);
  if (found == mounted_.end())
    fail(ErrorKind::invalid_argument, "{} is not mounted on {}; {}", id.empty() ? "\"\"" : printable(id), model_,
         names());
  if (found->second.gone) fail(ErrorKind::not_found, "adapter {} is being unmounted from {}", printable(id), model_);
  return found->second;
}

std::vector<std::string> AdapterTable::parts_of(std::string_view spec) const {
  std::vector<std::string> ids;
  for (size_t at = 0; at <= spec.size();) {
    const size_t end = std::min(spec.find('+', at), spec.size());
    ids.emplace_back(spec.substr(at, end - at));
    find(ids.back());
    at = end + 1;
  }
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    fail(ErrorKind::invalid_argument, "{} stands twice in the stack {}", printable(*twice), printable(spec));
  return ids;
}

AdapterChoice AdapterTable::choose(std::string_view spec) {
  if (spec == "none") return {};
  if (spec.empty()) spec = default_;
  if (spec.empty()) return {};
  std::vector<std::string> ids = parts_of(spec);
  std::string space;
  for (const std::string& id : ids) space += (space.empty() ? "" : "+") + mounted_.at(id).digest;
  if (ids.size() == 1) return {mounted_.at(ids.front()).slot, std::move(space)};

  auto stack = std::ranges::find(stacks_, ids, &Stack::ids);
  if (stack == stacks_.end()) {
    std::vector<const formats::Adapter*> parts;
    for (const std::string& id : ids) parts.push_back(&mounted_.at(id).adapter);
    const std::string name = printable(joined(ids));
    // Before anything makes room for what cannot be.
    if (const int64_t R = adapter_rank(parts); R > engine_.options().adapter_rank_max)
      fail(ErrorKind::invalid_argument, "the stack {} has rank {}, the engine has room for {}", name, R,
           engine_.options().adapter_rank_max);
    make_room(name, adapter_bytes(parts));
    const int32_t slot = engine_.mount_adapter(parts);
    stack = stacks_.insert(stacks_.end(), {.ids = std::move(ids), .slot = slot, .used = 0});
  }
  stack->used = ++clock_;
  return {stack->slot, std::move(space)};
}

std::vector<AdapterTable::Use> AdapterTable::uses() const {
  std::vector<Use> list;
  for (const auto& [id, mounted] : mounted_)
    if (!mounted.gone) list.push_back({id, requests(id, mounted)});
  return list;
}

}  // namespace hearth::decode
