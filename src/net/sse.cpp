#include "net/sse.h"

#include "base/error.h"

namespace hearth::net {

namespace {

void add_field(std::string& out, std::string_view field, std::string_view value) {
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != value.npos)
    fail(ErrorKind::invalid_argument, "the {} of an event has more than one line", field);
  out.append(field).append(": ").append(value).append("\n");
}

// Each line of the text behind the prefix.
void add_lines(std::string& out, std::string_view prefix, std::string_view text) {
  for (;;) {
    const size_t end = text.find_first_of("\r\n");
    out.append(prefix).append(text.substr(0, end)).append("\n");
    if (end == text.npos) return;
    text.remove_prefix(end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
  }
}

}  // namespace

std::string sse_event(std::string_view name, std::string_view data, std::string_view id) {
  std::string out;
  out.reserve(data.size() + name.size() + id.size() + 32);
  if (!id.empty()) add_field(out, "id", id);
  if (!name.empty()) add_field(out, "event", name);
  add_lines(out, "data: ", data);
  return out += "\n";
}

std::string sse_comment(std::string_view text) {
  std::string out;
  add_lines(out, ": ", text);
  return out += "\n";
}

}  // namespace hearth::net
