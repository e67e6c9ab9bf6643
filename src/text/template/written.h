// Who wrote the bytes of a render: the template itself, or the conversation that it is given. What the template wrote
// may become special tokens, what stands in a message may not (models.md 31).
//
// The answer is where bytes lie. Every string of a render stays in its place until the render ends, so a view tells its
// origin by its address, also when it is a slice, a stripped or a split part of a longer string. Where strings are made
// of others, Text carries the origin over. Bytes that nobody vouches for are not the template's: an operation that
// forgets to say so makes plain text, never a special token.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_range.h"
#include "text/template/value.h"

namespace hearth::text::jinja {

// Memory that holds the template's own words. One render, one thread.
class Written {
 public:
  // `fixed`: strings that stay in place, ascending by address (Ast::words). Both must outlive this.
  Written(const std::vector<std::string_view>& fixed, Budget& budget) : fixed_(fixed), budget_(budget) {}

  // These bytes, which stay in place, are the template's.
  void add(std::string_view bytes);

  // Appends the stretches of `view` that the template wrote, ascending, each moved by `offset`. Spends the budget.
  void find(std::string_view view, size_t offset, std::vector<ByteRange>& out) const;

  // Every byte of a view that is not empty.
  bool all(std::string_view view) const;

 private:
  const std::vector<std::string_view>& fixed_;
  Budget& budget_;
  std::map<const char*, const char*, std::less<>> made_;  // begin to end; disjoint
};

// A string in the making.
class Text {
 public:
  explicit Text(const Written& written) : written_(&written) {}

  Text& operator+=(std::string_view part);  // with its origin
  Text& operator+=(char c) {                // of the engine: a quote, a bracket
    bytes_ += c;
    return *this;
  }
  Text& operator+=(const Text& part);
  // `made` of `from` in a way that keeps no places (another case): the template's where all of `from` is.
  void add_made(std::string_view made, std::string_view from);

  void resize(size_t bytes);  // only shorter
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

  size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  const std::vector<ByteRange>& written() const { return ranges_; }  // ascending, disjoint, none touching the next

 private:
  void append_range(ByteRange range);

  const Written* written_;
  std::string bytes_;
  std::vector<ByteRange> ranges_;
};

}  // namespace hearth::text::jinja
