#include "decode/kv_cache.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::decode {

using graph::kPagePositions;

int64_t pages_needed(const graph::KvGroup& group, int64_t positions, int64_t rows) {
  const int64_t all = pages_of(positions);
  // A window keeps the pages that its oldest visible position lies in, the step's own, and one partly shared page.
  return group.window > 0 ? std::min(all, pages_of(group.window + rows) + 2) : all;
}

KvCache::KvCache(std::span<const graph::KvGroup> groups, graph::KvStorage& storage, int64_t sequences_max)
    : groups_(groups.begin(), groups.end()), storage_(storage), used_(groups.size(), 0) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t pages = storage_.pages(static_cast<int32_t>(g));
    share_.push_back(pages / sequences_max);
    count_.emplace_back(static_cast<size_t>(pages), 0);
    std::vector<int32_t>& stack = free_.emplace_back();
    for (int64_t p = pages - 1; p >= 0; --p) stack.push_back(static_cast<int32_t>(p));
  }
}

Sequence KvCache::make() const {
  Sequence s;
  s.pages.resize(groups_.size());
  return s;
}

int32_t KvCache::take(size_t group) {
  const int32_t page = free_[group].back();
  free_[group].pop_back();
  count_[group][static_cast<size_t>(page)] = 1;
  if (page >= used_[group]) {
    used_[group] = page + 1;
    if (first_use_) first_use_(group, page);
  }
  return page;
}

void KvCache::drop(size_t group, int32_t page) {
  int32_t& count = count_[group][static_cast<size_t>(page)];
  HEARTH_CHECK(count > 0, "page {} of group {} is free already", page, group);
  if (--count == 0) free_[group].push_back(page);
}

// Pages at the front that the next position does not see; those given back count.
int64_t KvCache::behind_window(const Sequence& s, size_t group) const {
  return first_page_seen(groups_[group], s.length());
}

// The page that is partly filled would be written, and others read it.
bool KvCache::shares_tail(const Sequence& s, int64_t n, size_t group) const {
  if (s.length() % kPagePositions == 0 || n == 0) return false;
  const auto tail = static_cast<size_t>(s.length() / kPagePositions);
  return count_[group][static_cast<size_t>(s.pages[group][tail])] > 1;
}

// Pages behind the partly filled one may be there from a step that failed.
int64_t KvCache::new_pages(const Sequence& s, int64_t n, size_t group) const {
  return pages_of(s.length() + n) - static_cast<int64_t>(s.pages[group].size()) + shares_tail(s, n, group);
}

int64_t KvCache::missing(const Sequence& s, int64_t n, size_t group) const {
  int64_t room = pages_free(group);
  for (int64_t i = 0; i < behind_window(s, group); ++i) {
    const int32_t page = s.pages[group][static_cast<size_t>(i)];
    room += page >= 0 && count_[group][static_cast<size_t>(page)] == 1;
  }
  return std::max<int64_t>(0, new_pages(s, n, group) - room);
}

bool KvCache::reserve(Sequence& s, int64_t n) {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (missing(s, n, g) > 0) return false;
  const int64_t end = pages_of(s.length() + n);
  const auto tail = static_cast<size_t>(s.length() / kPagePositions);
  const auto more = [&](size_t g) { return new_pages(s, n, g); };
  for (size_t g = 0; g < groups_.size(); ++g) {
    int64_t held = std::count_if(s.pages[g].begin(), s.pages[g].end(), [](int32_t page) { return page >= 0; });
    for (int64_t i = 0; i < behind_window(s, g) && (more(g) > pages_free(g) || held + more(g) > share_[g]); ++i)
      if (int32_t& page = s.pages[g][static_cast<size_t>(i)]; page >= 0) {
        drop(g, page);
        page = -1;
        --held;
      }
    if (shares_tail(s, n, g)) {
      const int32_t copy = take(g), old = s.pages[g][tail];
      storage_.copy_page(static_cast<int32_t>(g), old, copy);
      drop(g, old);
      s.pages[g][tail] = copy;
    }
    while (static_cast<int64_t>(s.pages[g].size()) < end) s.pages[g].push_back(take(g));
  }
  return true;
}

void KvCache::commit(Sequence& s, std::span<const int32_t> ids) { s.ids.insert(s.ids.end(), ids.begin(), ids.end()); }

void KvCache::truncate(Sequence& s, int64_t length) {
  HEARTH_CHECK(length <= s.length(), "truncate to {} of {}", length, s.length());
  s.ids.resize(static_cast<size_t>(length));
  for (size_t g = 0; g < groups_.size(); ++g)
    while (static_cast<int64_t>(s.pages[g].size()) > pages_of(length)) {
      if (s.pages[g].back() >= 0) drop(g, s.pages[g].back());
      s.pages[g].pop_back();
    }
}

int64_t KvCache::reusable_length(const Sequence& s, int64_t wanted) const {
  const int64_t length = std::min(wanted, s.length());
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].window == 0) continue;
    for (int64_t i = first_page_seen(groups_[g], length); i < pages_of(length); ++i)
      if (s.pages[g][static_cast<size_t>(i)] < 0) return 0;
  }
  return length;
}

Sequence KvCache::fork(const Sequence& s) {
  Sequence copy = s;
  for (size_t g = 0; g < groups_.size(); ++g) {
    copy.pages[g].resize(static_cast<size_t>(pages_of(s.length())));  // not what is reserved behind
    for (const int32_t page : copy.pages[g])
      if (page >= 0) ++count_[g][static_cast<size_t>(page)];
  }
  return copy;
}

int64_t KvCache::pages_seen(size_t group, int64_t length) const {
  return pages_of(length) - first_page_seen(groups_[group], length);
}

std::optional<Sequence> KvCache::blank(std::span<const int32_t> ids) {
  const auto length = static_cast<int64_t>(ids.size());
  for (size_t g = 0; g < groups_.size(); ++g)
    if (pages_seen(g, length) > pages_free(g)) return std::nullopt;
  Sequence s = make();
  s.ids.assign(ids.begin(), ids.end());
  for (size_t g = 0; g < groups_.size(); ++g) {
    s.pages[g].assign(static_cast<size_t>(first_page_seen(groups_[g], length)), -1);
    while (static_cast<int64_t>(s.pages[g].size()) < pages_of(length)) s.pages[g].push_back(take(g));
  }
  return s;
}

void KvCache::free(Sequence& s) {
  truncate(s, 0);
  s = make();
}

}  // namespace hearth::decode
