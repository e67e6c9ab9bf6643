// A trie over byte strings, built once from a list: the children of a node lie side by side, sorted by byte.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::text {

class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, int32_t>;  // spelling (not empty, no two alike), value >= 0

  ByteTrie() = default;
  explicit ByteTrie(std::vector<Entry> entries);

  bool empty() const { return nodes_.size() <= 1; }

  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;
  // The child of `node` by `byte`, or kNone.
  uint32_t child(uint32_t node, unsigned char byte) const;
  // The value of the string that ends at `node`, or -1.
  int32_t value(uint32_t node) const { return nodes_[node].value; }

  struct Match {
    int32_t value = -1;
    size_t size = 0;  // bytes
  };
  // The longest entry that text begins with; value -1 when there is none.
  Match longest(std::string_view text) const;
  // The shortest such entry.
  Match shortest(std::string_view text) const;

 private:
  struct Node {
    uint32_t first = 0;  // index of the first child
    uint16_t children = 0;
    int32_t value = -1;
  };
  std::vector<Node> nodes_;
  std::vector<unsigned char> bytes_;  // [nodes] the byte that leads to the node
};

}  // namespace hearth::text
