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
  // `pieces` is not owned and must outlive the index; it may grow. `expected`: about how many pieces will be entered.
  PieceIndex(const std::vector<std::string>& pieces, size_t expected) : pieces_(&pieces) {
    size_t size = 16;
    while (size < expected * 2) size *= 2;
    slots_.resize(size);
  }
  explicit PieceIndex(const std::vector<std::string>& pieces) : PieceIndex(pieces, pieces.size()) {}

  // Enters pieces[id]. Gives the id that already has this spelling, or -1 and enters it.
  int32_t insert(int32_t id) {
    if (2 * (entered_ + 1) > slots_.size()) grow();
    const std::string& text = (*pieces_)[static_cast<size_t>(id)];
    const uint32_t hash = hash_of(text);
    size_t slot = hash & mask();
    for (; slots_[slot].id >= 0; slot = (slot + 1) & mask())
      if (is(slots_[slot], hash, text)) return slots_[slot].id;
    slots_[slot] = {hash, id};
    ++entered_;
    return -1;
  }

  // -1 when no entered piece is spelled so.
  int32_t find(std::string_view text) const {
    const uint32_t hash = hash_of(text);
    for (size_t slot = hash & mask(); slots_[slot].id >= 0; slot = (slot + 1) & mask())
      if (is(slots_[slot], hash, text)) return slots_[slot].id;
    return -1;
  }

 private:
  // The hash beside the id spares most looks at spellings, which lie far apart.
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  static uint32_t hash_of(std::string_view text) {
    const size_t hash = std::hash<std::string_view>{}(text);
    return static_cast<uint32_t>(hash ^ hash >> 32);
  }
  size_t mask() const { return slots_.size() - 1; }
  bool is(const Slot& slot, uint32_t hash, std::string_view text) const {
    return slot.hash == hash && (*pieces_)[static_cast<size_t>(slot.id)] == text;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& entry : old) {
      if (entry.id < 0) continue;
      size_t slot = entry.hash & mask();
      while (slots_[slot].id >= 0) slot = (slot + 1) & mask();
      slots_[slot] = entry;
    }
  }

  const std::vector<std::string>* pieces_;
  std::vector<Slot> slots_;
  size_t entered_ = 0;
};

}  // namespace hearth::text
