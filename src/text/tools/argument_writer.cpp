#include "text/tools/argument_writer.h"

#include <fmt/format.h>

namespace hearth::text::tools {
namespace {

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else out += c;
    }
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void ArgumentWriter::separate() {
  if (scopes_.empty() || scopes_.back().object) return;  // a member's comma was written with its key
  if (!scopes_.back().empty) out_ += ", ";
  scopes_.back().empty = false;
}

bool ArgumentWriter::begin(char bracket) {
  if (scopes_.size() >= kDepthMax) return false;
  separate();
  out_ += bracket;
  scopes_.push_back({.object = bracket == '{'});
  return true;
}

void ArgumentWriter::end() {
  out_ += scopes_.back().object ? '}' : ']';
  scopes_.pop_back();
}

bool ArgumentWriter::key(std::string_view name) {
  Scope& scope = scopes_.back();
  if (!scope.keys.emplace(name).second) return false;
  out_ += scope.empty ? "\"" : ", \"";
  scope.empty = false;
  append_escaped(out_, name);
  out_ += "\": ";
  return true;
}

void ArgumentWriter::begin_string() {
  separate();
  out_ += '"';
}

void ArgumentWriter::text(std::string_view bytes) { append_escaped(out_, bytes); }

void ArgumentWriter::literal(std::string_view json) {
  separate();
  out_ += json;
}

}  // namespace hearth::text::tools
