#include "text/tokenizer/byte_trie.h"

#include <algorithm>

namespace hearth::text {

ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  struct Range {
    size_t begin, end;  // entries that share the bytes on the way to the node
  };
  nodes_.push_back({});
  bytes_.push_back(0);
  // Breadth first: when a node's turn comes, all its children are appended together.
  std::vector<std::pair<uint32_t, Range>> level = {{kRoot, {0, entries.size()}}}, below;
  for (size_t depth = 0; !level.empty(); ++depth, level.swap(below), below.clear()) {
    for (auto [node, range] : level) {
      if (range.begin < range.end && entries[range.begin].first.size() == depth)
        nodes_[node].value = entries[range.begin++].second;
      nodes_[node].first = static_cast<uint32_t>(nodes_.size());
      for (size_t i = range.begin; i < range.end;) {
        const char byte = entries[i].first[depth];
        size_t end = i + 1;
        while (end < range.end && entries[end].first[depth] == byte) ++end;
        ++nodes_[node].children;
        below.push_back({static_cast<uint32_t>(nodes_.size()), {i, end}});
        nodes_.push_back({});
        bytes_.push_back(static_cast<unsigned char>(byte));
        i = end;
      }
    }
  }
}

uint32_t ByteTrie::child(uint32_t node, unsigned char byte) const {
  const Node& n = nodes_[node];
  const unsigned char* begin = bytes_.data() + n.first;
  const unsigned char* end = begin + n.children;
  if (n.children == 256) return n.first + byte;
  const unsigned char* found = n.children <= 8 ? std::find(begin, end, byte) : std::lower_bound(begin, end, byte);
  return found != end && *found == byte ? static_cast<uint32_t>(found - bytes_.data()) : kNone;
}

ByteTrie::Match ByteTrie::longest(std::string_view text) const {
  Match best;
  if (nodes_.empty()) return best;
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (nodes_[node].value >= 0) best = {nodes_[node].value, i + 1};
  }
  return best;
}

ByteTrie::Match ByteTrie::shortest(std::string_view text) const {
  if (nodes_.empty()) return {};
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == kNone) break;
    if (nodes_[node].value >= 0) return {nodes_[node].value, i + 1};
  }
  return {};
}

}  // namespace hearth::text
