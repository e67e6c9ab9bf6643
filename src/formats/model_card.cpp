#include "formats/model_card.h"

namespace hearth::formats {
namespace {

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Without quotes or a comment behind it.
std::string scalar(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const size_t end = text.find(text.front(), 1);
    return std::string(text.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  if (const size_t comment = text.find(" #"); comment != std::string_view::npos)
    text = trimmed(text.substr(0, comment));
  return std::string(text);
}

}  // namespace

std::string license_of_card(std::string_view text) {
  if (next_line(text) != "---") return "";
  std::string license, name;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line == "---") {
      if (license == "other" && !name.empty()) return "other (" + name + ")";
      return license;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (line.substr(0, colon) == "license") license = scalar(line.substr(colon + 1));
    if (line.substr(0, colon) == "license_name") name = scalar(line.substr(colon + 1));
  }
  return "";  // front matter that does not end is none
}

}  // namespace hearth::formats
