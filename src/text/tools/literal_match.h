// White space, then one of a few fixed words, byte by byte.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "text/tools/argument_writer.h"

namespace hearth::text::tools {

enum class Match { more, found, failed };

class LiteralMatch {
 public:
  LiteralMatch() = default;
  // No word is a prefix of the other; both outlive the match; an empty second one is none.
  explicit LiteralMatch(std::string_view first, std::string_view second = {}) : words_{first, second} {}

  Match push(char c) {
    if (seen_.empty() && is_blank(c)) return Match::more;
    seen_ += c;
    bool open = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].empty()) continue;
      if (words_[i] == seen_) {
        which_ = i;
        return Match::found;
      }
      open |= words_[i].starts_with(seen_);
    }
    return open ? Match::more : Match::failed;
  }
  size_t which() const { return which_; }

 private:
  std::array<std::string_view, 2> words_;
  std::string seen_;
  size_t which_ = 0;
};

}  // namespace hearth::text::tools
