#include "hub/nearest.h"

#include <algorithm>
#include <numeric>

#include "base/ascii.h"

namespace hearth::hub {
namespace {

using ascii::lower;

bool starts_with_ignoring_case(std::string_view text, std::string_view part) {
  return text.size() >= part.size() &&
         std::equal(part.begin(), part.end(), text.begin(), [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t count) {
  struct Hit {
    size_t distance;
    const std::string* candidate;
  };
  std::vector<Hit> hits;
  if (name.size() > 200) return {};  // longer than any name: quadratic work for nothing
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    const size_t limit = std::clamp<size_t>(std::max(name.size(), candidate.size()) / 3, 1, 4);
    if (distance <= limit || (name.size() >= 2 && starts_with_ignoring_case(candidate, name)))
      hits.push_back({distance, &candidate});
  }
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (const Hit& hit : hits)
    if (names.size() < count && std::find(names.begin(), names.end(), *hit.candidate) == names.end())
      names.push_back(*hit.candidate);
  return names;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace hearth::hub
