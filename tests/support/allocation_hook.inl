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

void* allocate(size_t size) {
  if (watching) {
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
  if (void* p = allocate(size)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }

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
