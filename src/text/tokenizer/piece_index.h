// Spelling to id for the pieces of a vocabulary: open addressing over ids, no copies of the spellings.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

class PieceIndex {
 public:
  // `pieces` is not owned and must outlive the index (its strings may not move).
  explicit PieceIndex(const std::vector<std::string>& pieces) : pieces_(&pieces) {
    size_t size = 16;
    while (size < pieces.size() * 2) size *= 2;
    slots_.assign(size, -1);
  }

  // Enters pieces[id]. Gives the id that already has this spelling, or -1 and enters it.
  int32_t insert(int32_t id) {
    const std::string& text = (*pieces_)[static_cast<size_t>(id)];
    size_t slot = hash(text);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
      if ((*pieces_)[static_cast<size_t>(slots_[slot])] == text) return slots_[slot];
    slots_[slot] = id;
    return -1;
  }

  // -1 when no entered piece is spelled so.
  int32_t find(std::string_view text) const {
    for (size_t slot = hash(text); slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
      if ((*pieces_)[static_cast<size_t>(slots_[slot])] == text) return slots_[slot];
    return -1;
  }

 private:
  size_t hash(std::string_view text) const { return std::hash<std::string_view>{}(text) & (slots_.size() - 1); }

  const std::vector<std::string>* pieces_;
  std::vector<int32_t> slots_;
};

}  // namespace hearth::text
