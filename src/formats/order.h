// Sorted positions as an index over a table: four bytes an entry, no copy of the names.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace hearth::formats {

// `name` gives the std::string_view of an item.
template <class Items, class Name>
std::vector<uint32_t> order_by(const Items& items, const Name& name) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return name(items[a]) < name(items[b]); });
  return order;
}

// Two items of one name, as positions a < b; a == b when all names differ.
struct Repeat {
  uint32_t a = 0, b = 0;
  explicit operator bool() const { return a != b; }
};
template <class Items, class Name>
Repeat find_repeat(const Items& items, const std::vector<uint32_t>& order, const Name& name) {
  for (size_t i = 1; i < order.size(); ++i)
    if (name(items[order[i]]) == name(items[order[i - 1]]))
      return {std::min(order[i], order[i - 1]), std::max(order[i], order[i - 1])};
  return {};
}

template <class Items, class Name>
const typename Items::value_type* find_by(const Items& items, const std::vector<uint32_t>& order, const Name& name,
                                          std::string_view wanted) {
  const auto at = std::lower_bound(order.begin(), order.end(), wanted,
                                   [&](uint32_t i, std::string_view w) { return name(items[i]) < w; });
  return at != order.end() && name(items[*at]) == wanted ? &items[*at] : nullptr;
}

}  // namespace hearth::formats
