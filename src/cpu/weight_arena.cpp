#include "cpu/weight_arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace hearth::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20, kMapping = int64_t{256} << 20, kAlign = 64;

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

WeightArena::Piece WeightArena::take(int64_t bytes) {
  const int64_t room = round_up(bytes, kAlign);
  if (room > end_ - next_) {
    const int64_t size = round_up(std::max(room, kMapping), kHugePage), mapped = size + kHugePage;
    void* memory = mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      fail(ErrorKind::out_of_memory, "packed weights: {} bytes of address space are not to be had", mapped);
    mapping_ = std::shared_ptr<const void>(
        memory, [mapped](const void* p) { munmap(const_cast<void*>(p), static_cast<size_t>(mapped)); });
    const auto address = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t start = (address + kHugePage - 1) / kHugePage * kHugePage;
    next_ = static_cast<std::byte*>(memory) + (start - address);
    end_ = next_ + size;
    madvise(next_, static_cast<size_t>(size), MADV_HUGEPAGE);  // advice: without it all is right, and slower
  }
  std::byte* at = next_;
  next_ += room;
  return {{at, static_cast<size_t>(bytes)}, mapping_};
}

}  // namespace hearth::cpu
