// A terminal as small as the editor's renderings need: a grid, a cursor, CSI A C J H, deferred wrap, no scrollback.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text_width.h"

namespace hearth::testing {

class Screen {
 public:
  Screen(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<size_t>(rows)) { clear_below(); }

  void write(std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
      const char c = bytes[at];
      if (c == '\r') {
        column_ = 0;
        ++at;
      } else if (c == '\n') {
        if (row_ + 1 == rows_) scroll();
        else ++row_;
        ++at;
      } else if (c == '\x1b') {
        at = control(bytes, at);
      } else {
        const size_t end = bytes.find_first_of("\r\n\x1b", at);
        put(std::string(bytes.substr(at, end - at)));
        at = std::min(end, bytes.size());
      }
    }
  }

  std::string line(int row) const {
    std::string text;
    for (const std::string& cell : cells_[static_cast<size_t>(row)]) text += cell;
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }
  int row() const { return row_; }
  int column() const { return column_; }
  int scrolled() const { return scrolled_; }

 private:
  size_t control(std::string_view bytes, size_t at) {
    size_t end = at + 2;
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    if (bytes.size() < at + 3 || bytes[at + 1] != '[' || end >= bytes.size()) throw std::runtime_error("bad sequence");
    const std::string argument(bytes.substr(at + 2, end - at - 2));
    const int n = argument.empty() || argument[0] == '?' ? 1 : std::stoi(argument);
    switch (bytes[end]) {
      case 'A':
        row_ -= n;
        if (row_ < 0) throw std::runtime_error("cursor above the screen");
        break;
      case 'C': column_ += n; break;
      case 'J':
        if (argument == "2") {
          for (auto& line : cells_) line.assign(static_cast<size_t>(columns_), " ");
        } else {
          clear_below();
        }
        break;
      case 'H': row_ = column_ = 0; break;
      default: throw std::runtime_error("unknown sequence");
    }
    return end + 1;
  }

  void put(const std::string& text) {
    for (const cli::Cluster& cluster : cli::clusters(text)) {
      if (column_ + cluster.width > columns_) throw std::runtime_error("a row is wider than the screen");
      auto& line = cells_[static_cast<size_t>(row_)];
      line[static_cast<size_t>(column_)] = text.substr(cluster.begin, cluster.end - cluster.begin);
      if (cluster.width == 2) line[static_cast<size_t>(column_) + 1].clear();
      column_ += cluster.width;
    }
  }

  void clear_below() {
    auto& line = cells_[static_cast<size_t>(row_)];
    line.resize(static_cast<size_t>(columns_), " ");
    for (size_t c = static_cast<size_t>(column_); c < line.size(); ++c) line[c] = " ";
    for (size_t r = static_cast<size_t>(row_) + 1; r < cells_.size(); ++r)
      cells_[r].assign(static_cast<size_t>(columns_), " ");
  }

  void scroll() {
    cells_.erase(cells_.begin());
    cells_.emplace_back(static_cast<size_t>(columns_), " ");
    ++scrolled_;
  }

  int columns_, rows_, row_ = 0, column_ = 0, scrolled_ = 0;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace hearth::testing
