// Suggestions for mistyped names: commands, flags, settings, models.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::hub {

// Edits (insert, delete, replace, swap of neighbours; each pair of neighbours swapped at most once) that turn a into b,
// ASCII case ignored. O(|a| |b|).
size_t edit_distance(std::string_view a, std::string_view b);

// Up to `count` candidates worth suggesting for `name`, nearest first, ties in the given order: those within a third of
// the longer length (at least 1, at most 4 edits), or which begin with `name`.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t count = 3);

bool contains_ignoring_case(std::string_view text, std::string_view part);  // ASCII

}  // namespace hearth::hub
