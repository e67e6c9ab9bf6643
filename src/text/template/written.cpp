#include "text/template/written.h"

#include <algorithm>

namespace hearth::text::jinja {

void Written::add(std::string_view bytes) {
  if (!bytes.empty()) made_[bytes.data()] = bytes.data() + bytes.size();
}

void Written::find(std::string_view view, size_t offset, std::vector<ByteRange>& out) const {
  if (view.empty()) return;
  const std::less<> before;
  const size_t found = out.size();
  const char *const begin = view.data(), *const end = begin + view.size();
  const auto add = [&](const char* from, const char* to) {
    from = std::max(from, begin, before);
    to = std::min(to, end, before);
    if (before(from, to))
      out.push_back({offset + static_cast<size_t>(from - begin), offset + static_cast<size_t>(to - begin)});
  };
  // Made strings and fixed ones never share memory, so at most one of the two searches finds something.
  auto made = made_.upper_bound(begin);
  if (made != made_.begin()) --made;
  for (; made != made_.end() && before(made->first, end); ++made) add(made->first, made->second);
  auto word = std::upper_bound(fixed_.begin(), fixed_.end(), begin,
                               [&](const char* at, std::string_view w) { return before(at, w.data()); });
  if (word != fixed_.begin()) --word;
  for (; word != fixed_.end() && before(word->data(), end); ++word) add(word->data(), word->data() + word->size());
  budget_.spend(static_cast<int64_t>((out.size() - found) / 8));
}

bool Written::all(std::string_view view) const {
  std::vector<ByteRange> found;
  find(view, 0, found);
  size_t covered = 0;
  for (const ByteRange& r : found) {
    if (r.begin != covered) return false;
    covered = r.end;
  }
  return !view.empty() && covered == view.size();
}

void Text::append_range(ByteRange range) {
  if (!ranges_.empty() && ranges_.back().end == range.begin) ranges_.back().end = range.end;
  else ranges_.push_back(range);
}

Text& Text::operator+=(std::string_view part) {
  std::vector<ByteRange> found;
  written_->find(part, bytes_.size(), found);
  for (const ByteRange& r : found) append_range(r);
  bytes_ += part;
  return *this;
}

Text& Text::operator+=(const Text& part) {
  for (const ByteRange& r : part.ranges_) append_range({bytes_.size() + r.begin, bytes_.size() + r.end});
  bytes_ += part.bytes_;
  return *this;
}

void Text::add_made(std::string_view made, std::string_view from) {
  if (!made.empty() && written_->all(from)) append_range({bytes_.size(), bytes_.size() + made.size()});
  bytes_ += made;
}

void Text::resize(size_t bytes) {
  bytes_.resize(std::min(bytes, bytes_.size()));
  while (!ranges_.empty() && ranges_.back().begin >= bytes_.size()) ranges_.pop_back();
  if (!ranges_.empty()) ranges_.back().end = std::min(ranges_.back().end, bytes_.size());
}

}  // namespace hearth::text::jinja
