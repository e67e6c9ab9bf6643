// Whose turn it is: first come, first served for one owner, owners in turn (spec server 33).
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>

namespace hearth::decode {

// Items wait under an owner's name. A head that does not fit may be overtaken by others' heads, kOvertakenMax times at
// most; then all wait for it.
template <class Item>
class WaitQueue {
 public:
  static constexpr int kOvertakenMax = 8;

  void push(const std::string& owner, Item item) {
    for (Line& line : lines_)
      if (line.owner == owner) return line.items.push_back({std::move(item), 0});
    lines_.push_back({owner, {}});
    lines_.back().items.push_back({std::move(item), 0});
  }

  // Back to where it was taken from: its owner's line, in front.
  void push_front(const std::string& owner, Item item) {
    for (Line& line : lines_)
      if (line.owner == owner) return line.items.push_front({std::move(item), 0});
    lines_.push_front({owner, {}});
    lines_.front().items.push_front({std::move(item), 0});
  }

  // Takes the first head, in turn, for which fits(item) holds; its owner goes behind the others.
  std::optional<Item> take(const std::function<bool(const Item&)>& fits) {
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      Entry& head = line->items.front();
      if (fits(head.item)) {
        for (auto before = lines_.begin(); before != line; ++before) ++before->items.front().overtaken;
        Item item = std::move(head.item);
        line->items.pop_front();
        if (line->items.empty()) lines_.erase(line);
        else lines_.splice(lines_.end(), lines_, line);
        return item;
      }
      if (head.overtaken >= kOvertakenMax) return std::nullopt;
    }
    return std::nullopt;
  }

  // Takes out every item for which gone(item) holds, and hands it over.
  void remove(const std::function<bool(const Item&)>& gone, const std::function<void(Item)>& give) {
    for (auto line = lines_.begin(); line != lines_.end();) {
      for (auto entry = line->items.begin(); entry != line->items.end();) {
        if (gone(entry->item)) {
          give(std::move(entry->item));
          entry = line->items.erase(entry);
        } else {
          ++entry;
        }
      }
      line = line->items.empty() ? lines_.erase(line) : std::next(line);
    }
  }

  int64_t size() const {
    int64_t n = 0;
    for (const Line& line : lines_) n += static_cast<int64_t>(line.items.size());
    return n;
  }

 private:
  struct Entry {
    Item item;
    int overtaken;
  };
  struct Line {
    std::string owner;
    std::deque<Entry> items;  // never empty
  };
  std::list<Line> lines_;  // in the order of turns
};

}  // namespace hearth::decode
