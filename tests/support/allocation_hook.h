// Counts this thread's allocations (operator new) while a watch lives, and makes the n-th one fail when asked. One
// watch at a time.
#pragma once
#include <cstddef>

namespace hearth::test {

struct Allocations {
  size_t count = 0, largest = 0, peak = 0;  // peak: live bytes since the start of the watch
};

class AllocationWatch {
 public:
  explicit AllocationWatch(size_t fail_nth = 0);
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  Allocations so_far() const;
};

}  // namespace hearth::test
