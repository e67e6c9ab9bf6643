// Included by one source of a test program. The replaced operators stand alone: inlined into callers they would look
// like mismatched pairs.
#include "support/allocation_hook.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local bool watching = false;
thread_local hearth::test::Allocations seen;
thread_local long long live = 0, fail_at = 0;

// Whoever asks without exceptions does without the memory, so that making it fail would show nothing.
enum class Failure : bool { thrown, survived };

void* allocate(size_t size, Failure failure) {
  if (watching && failure == Failure::thrown) {
    ++seen.count;
    if (fail_at > 0 && static_cast<long long>(seen.count) == fail_at) return nullptr;
  }
  void* p = std::malloc(size ? size : 1);
  if (watching && p) {
    seen.largest = std::max(seen.largest, size);
    live += static_cast<long long>(malloc_usable_size(p));
    seen.peak = std::max(seen.peak, static_cast<size_t>(std::max(live, 0ll)));
  }
  return p;
}

void release(void* p) noexcept {
  if (watching && p) live -= static_cast<long long>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(size_t size) {
  if (void* p = allocate(size, Failure::thrown)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, Failure::survived); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, Failure::survived); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }

namespace hearth::test {

AllocationWatch::AllocationWatch(size_t fail_nth) {
  seen = {};
  live = 0;
  fail_at = static_cast<long long>(fail_nth);
  watching = true;
}
AllocationWatch::~AllocationWatch() {
  watching = false;
  fail_at = 0;
}
Allocations AllocationWatch::so_far() const { return seen; }

}  // namespace hearth::test
