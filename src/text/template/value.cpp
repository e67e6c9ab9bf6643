#include "text/template/value.h"

#include <fmt/format.h>

#include <cstring>

#include "text/template/template.h"

namespace hearth::text::jinja {
namespace {

constexpr int64_t kCheckEvery = 2048;      // steps between two looks at the clock
constexpr size_t kBlockBytes = 32 * 1024;  // arena block; larger requests get their own

}  // namespace

Budget::Budget(int64_t steps, int64_t wall_ms, std::function<int64_t()> now_ms)
    : total_(steps), left_(steps), next_check_(steps - kCheckEvery), wall_ms_(wall_ms), now_ms_(std::move(now_ms)) {
  begin_ms_ = now_ms_();
}

void Budget::check() {
  if (left_ < 0) throw Fault(fmt::format("the template needs more than {} steps", total_), kStepsLimit);
  next_check_ = left_ - kCheckEvery;
  if (now_ms_() - begin_ms_ > wall_ms_)
    throw Fault(fmt::format("the template needs more than {} ms", wall_ms_), kTimeLimit);
  if (next_check_ < 0) next_check_ = 0;
}

void* Arena::do_allocate(size_t bytes, size_t alignment) {
  budget_.spend(1 + static_cast<int64_t>(bytes / 64));
  size_t pad = (alignment - reinterpret_cast<uintptr_t>(at_) % alignment) % alignment;
  if (bytes + pad > room_) {
    const size_t block = bytes + alignment > kBlockBytes / 4 ? bytes + alignment : kBlockBytes;
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
    std::byte* const begin = blocks_.back().get();
    pad = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
    if (block != kBlockBytes) return begin + pad;
    at_ = begin;
    room_ = block;
  }
  std::byte* const p = at_ + pad;
  at_ += pad + bytes;
  room_ -= pad + bytes;
  return p;
}

std::string_view Arena::copy(std::string_view bytes) {
  if (bytes.empty()) return {"", 0};
  char* p = static_cast<char*>(allocate(bytes.size(), 1));
  std::memcpy(p, bytes.data(), bytes.size());
  return {p, bytes.size()};
}

std::string_view type_name(const Value& v) {
  switch (v.type) {
    case Type::undefined: return "Undefined";
    case Type::none: return "NoneType";
    case Type::boolean: return "bool";
    case Type::integer: return "int";
    case Type::floating: return "float";
    case Type::string: return "str";
    case Type::list: return "list";
    case Type::tuple: return "tuple";
    case Type::dict: return "dict";
    case Type::object: break;
  }
  switch (v.object->kind) {
    case ObjectKind::range: return "range";
    case ObjectKind::view: {
      const auto what = static_cast<const DictView*>(v.object)->what;
      return what == DictView::What::keys ? "dict_keys" : what == DictView::What::values ? "dict_values" : "dict_items";
    }
    case ObjectKind::iterator: return "generator";
    case ObjectKind::name_space: return "Namespace";
    case ObjectKind::function: return "function";
    case ObjectKind::method: return "method";
    case ObjectKind::macro: return "Macro";
    case ObjectKind::loop: return "LoopContext";
    case ObjectKind::joiner: return "Joiner";
    case ObjectKind::cycler: return "Cycler";
    case ObjectKind::dict_type: return "TemplateDict";
    case ObjectKind::slice: return "slice";
  }
  return "object";
}

}  // namespace hearth::text::jinja
