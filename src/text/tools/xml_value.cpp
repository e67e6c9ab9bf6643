#include "text/tools/xml_value.h"

#include <charconv>

#include "base/utf8.h"

namespace hearth::text::tools {
namespace {

constexpr std::string_view kSection = "<![CDATA[", kSectionClose = "]]>", kNull = "null";
constexpr size_t kEntityMax = 10;

// "&lt;" and the like to its character; empty when it is none.
std::string entity_text(std::string_view entity) {
  const std::string_view name = entity.substr(1, entity.size() - 2);
  if (name == "lt") return "<";
  if (name == "gt") return ">";
  if (name == "amp") return "&";
  if (name == "quot") return "\"";
  if (name == "apos") return "'";
  if (!name.starts_with('#')) return {};
  const bool hex = name.size() > 1 && name[1] == 'x';
  const std::string_view digits = name.substr(hex ? 2 : 1);
  uint32_t point = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), point, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size() || point == 0 || point > 0x10ffff ||
      (point >= 0xd800 && point < 0xe000))
    return {};
  std::string out;
  append_utf8(out, point);
  return out;
}

}  // namespace

XmlValueReader::XmlValueReader(const XmlValueRules& rules, ArgumentWriter& writer, StringRule rule)
    : rules_(&rules), writer_(&writer), rule_(rule) {
  if (rule_ != StringRule::yes) return;
  writer_->begin_string();
  string_open_ = true;
}

Step XmlValueReader::push(char c) { return state_ == State::start ? start_byte(c) : body_byte(c); }

Step XmlValueReader::start_byte(char c) {
  if (!rules_->markup) {
    state_ = State::plain;
    return rules_->line_breaks && c == '\n' ? Step::more : body_byte(c);
  }
  if (held_.empty() && is_blank(c)) {
    blanks_ += c;
    return Step::more;
  }
  held_ += c;
  if (held_ == kSection) {
    state_ = State::section;
    held_.clear();
    return Step::more;
  }
  if (kSection.starts_with(held_)) return Step::more;
  state_ = State::plain;
  std::string again = blanks_ + held_;
  held_.clear();
  // Shorter than a closing tag with what follows it, but for its blanks: no end of the value lies in it.
  for (const char b : again) body_byte(b);
  return Step::more;
}

Step XmlValueReader::body_byte(char c) {
  const bool section = state_ == State::section;
  const std::string_view close = section ? kSectionClose : rules_->close;
  if (!closed_) {
    held_ += c;
    while (!held_.empty() && !close.starts_with(held_)) {
      content(held_.front());
      held_.erase(0, 1);
    }
    closed_ = held_ == close;
    return Step::more;
  }
  if (follow_.empty() && is_blank(c)) {
    gap_ += c;
    return Step::more;
  }
  follow_ += c;
  const std::array<std::string_view, 2> next = section ? std::array{rules_->close, kSection} : rules_->next;
  bool open = false;
  for (size_t i = 0; i < next.size(); ++i) {
    open |= next[i].starts_with(follow_);
    if (next[i] != follow_) continue;
    if (section && i == 1) {  // one section ends, another begins: ]]> itself is written so
      held_.clear();
      gap_.clear();
      follow_.clear();
      closed_ = false;
      return Step::more;
    }
    if (!section) next_ = i;
    finish();
    return Step::done;
  }
  if (open) return Step::more;
  // The closing tag was text.
  const std::string released = held_ + gap_, again = follow_;
  held_.clear();
  gap_.clear();
  follow_.clear();
  closed_ = false;
  for (const char b : released) content(b);
  for (const char b : again) body_byte(b);  // too short for an end
  return Step::more;
}

void XmlValueReader::content(char c) {
  if (!rules_->markup || state_ == State::section) return text(c);
  if (entity_.empty() && c != '&') return text(c);
  if (c == '&') end_entity();
  entity_ += c;
  const bool name_byte = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == '#';
  if (c == ';') {
    const std::string meant = entity_text(entity_);
    if (meant.empty()) return end_entity();
    entity_.clear();
    put(meant);
  } else if ((entity_.size() > 1 && !name_byte) || entity_.size() > kEntityMax) {
    end_entity();
  }
}

void XmlValueReader::end_entity() {
  const std::string raw = std::exchange(entity_, {});
  for (const char b : raw) text(b);
}

void XmlValueReader::text(char c) {
  if (std::exchange(line_break_, rules_->line_breaks && c == '\n')) put('\n');
  if (!line_break_) put(c);
}

void XmlValueReader::put(char c) { put(std::string_view(&c, 1)); }

void XmlValueReader::put(std::string_view bytes) {
  if (string_open_) return writer_->text(bytes);
  value_ += bytes;
  if (rule_ == StringRule::no || kNull.starts_with(value_)) return;
  writer_->begin_string();
  string_open_ = true;
  writer_->text(value_);
}

void XmlValueReader::finish() {
  end_entity();
  if (string_open_) return writer_->end_string();
  if (rule_ == StringRule::nullable && value_ == kNull) return writer_->literal(kNull);
  if (rule_ == StringRule::no) return decode();
  writer_->begin_string();
  writer_->text(value_);
  writer_->end_string();
}

void XmlValueReader::decode() {
  const std::string_view trimmed = without_blanks(value_);
  ArgumentWriter parsed;
  ValueReader reader(parsed, Syntax::python);
  Step step = Step::more;
  for (size_t i = 0; i < trimmed.size(); ++i) {
    step = reader.push(trimmed[i]);
    if (step == Step::done && i + 1 < trimmed.size()) step = Step::failed;
    if (step != Step::more) break;
  }
  if (step == Step::more) step = reader.finish();
  if (step == Step::done) return writer_->literal(parsed.written());
  writer_->begin_string();
  writer_->text(value_);
  writer_->end_string();
}

}  // namespace hearth::text::tools
