// The README.md of a model folder: YAML between two lines of "---", then text for people.
#pragma once
#include <string>
#include <string_view>

namespace hearth::formats {

// `license:` of the front matter; where that is "other", license_name behind it, "other (gemma)". Empty without one.
// Reads plain and quoted scalars at the top level alone. Never throws.
std::string license_of_card(std::string_view readme);

}  // namespace hearth::formats
