#include "cli/line_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "cli/text_width.h"

namespace hearth::cli {
namespace {

constexpr char kEscape = 27, kDelete = 127;
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr std::string_view kTripleQuote = "\"\"\"";
constexpr size_t kTextBytesMax = size_t{4} << 20;

constexpr unsigned char control(char letter) { return static_cast<unsigned char>(letter - '@'); }

bool is_word_byte(char c) { return ascii::is_alnum(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }

// What a paste may bring in: text, tabs and line ends. Escape sequences in it would reach the terminal on redraw.
std::string cleaned(std::string_view pasted) {
  std::string out;
  for (size_t i = 0; i < pasted.size(); ++i) {
    const char c = pasted[i];
    if (c == '\r') {
      if (i + 1 == pasted.size() || pasted[i + 1] != '\n') out += '\n';
    } else if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != kDelete)) {
      out += c;
    }
  }
  return repaired(out);
}

}  // namespace

void LineEditor::begin(std::string prompt, std::string continuation) {
  prompt_ = std::move(prompt);
  continuation_ = std::move(continuation);
  text_.clear();
  cursor_ = 0;
  input_ = Input::ground;
  pending_.clear();
  browsing_ = 0;
  draft_.clear();
  searching_ = false;
  last_was_kill_ = false;
  forget_screen();
}

void LineEditor::resize(int columns, int rows) {
  columns_ = std::max(columns, 8);
  rows_ = std::max(rows, 2);
}

LineEditor::Event LineEditor::feed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  Event event = Event::none;
  this_is_kill_ = false;
  switch (input_) {
    case Input::paste:
      pending_ += c;
      if (pending_.ends_with(kPasteEnd)) {
        pending_.resize(pending_.size() - kPasteEnd.size());
        insert(cleaned(pending_));
        pending_.clear();
        input_ = Input::ground;
      } else if (pending_.size() > kTextBytesMax + kPasteEnd.size()) {
        pending_.erase(kTextBytesMax, pending_.size() - kTextBytesMax - kPasteEnd.size());
      }
      return event;
    case Input::escape:
      if (c == '[') input_ = Input::csi;
      else if (c == 'O') input_ = Input::ss3;
      else if (c != kEscape) {
        input_ = Input::ground;
        on_escape(byte);
      }
      break;
    case Input::csi:
      if (byte >= 0x40 && byte <= 0x7E) {
        input_ = Input::ground;
        on_csi(byte);
        if (input_ != Input::paste) pending_.clear();
      } else if (pending_.size() < 16) {
        pending_ += c;
      }
      break;
    case Input::ss3:
      input_ = Input::ground;
      pending_.clear();
      on_csi(byte);
      break;
    case Input::ground: event = on_ground(byte); break;
  }
  last_was_kill_ = this_is_kill_;
  return event;
}

LineEditor::Event LineEditor::on_ground(unsigned char byte) {
  if (!pending_.empty()) {  // inside a UTF-8 sequence
    if (continues_utf8(static_cast<char>(byte))) {
      pending_ += static_cast<char>(byte);
      if (pending_.size() < utf8_lead(pending_[0]).size) return Event::none;
      const std::string whole = repaired(std::exchange(pending_, {}));
      bool handled = false;
      if (searching_) {
        query_ += whole;
        search_again(false);
        handled = true;
      }
      if (!handled) insert(whole);
      return Event::none;
    }
    pending_.clear();
    insert("\xEF\xBF\xBD");
  }
  if (byte >= 0x80) {
    if (utf8_lead(static_cast<char>(byte)).size > 1) pending_ = static_cast<char>(byte);
    else insert("\xEF\xBF\xBD");
    return Event::none;
  }
  if (byte == kEscape) {
    if (searching_) leave_search(false);
    input_ = Input::escape;
    return Event::none;
  }
  if (searching_) {
    bool handled = false;
    on_search(byte, handled);
    if (handled) return Event::none;
  }
  if (byte < 0x20 || byte == kDelete) return on_control(byte);
  const char c = static_cast<char>(byte);
  insert({&c, 1});
  return Event::none;
}

LineEditor::Event LineEditor::on_control(unsigned char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      if (wants_more()) {
        insert("\n");
        return Event::none;
      }
      cursor_ = text_.size();
      return Event::submit;
    case '\t': insert("    "); break;
    case control('C'): return Event::interrupt;
    case control('Z'): return Event::suspend;
    case control('D'):
      if (text_.empty()) return Event::end;
      erase(cursor_, right(cursor_));
      break;
    case control('H'):
    case kDelete: erase(left(cursor_), cursor_); break;
    case control('A'): cursor_ = line_begin(cursor_); break;
    case control('E'): cursor_ = line_end(cursor_); break;
    case control('B'): cursor_ = left(cursor_); break;
    case control('F'): cursor_ = right(cursor_); break;
    case control('P'): move_vertically(-1); break;
    case control('N'): move_vertically(1); break;
    case control('K'): {
      const size_t end = line_end(cursor_);
      kill(cursor_, end == cursor_ ? right(cursor_) : end, true);
      break;
    }
    case control('U'): kill(line_begin(cursor_), cursor_, false); break;
    case control('W'): {
      size_t begin = cursor_;
      while (begin > 0 && (text_[begin - 1] == ' ' || text_[begin - 1] == '\n')) --begin;
      while (begin > 0 && text_[begin - 1] != ' ' && text_[begin - 1] != '\n') --begin;
      kill(begin, cursor_, false);
      break;
    }
    case control('Y'): insert(killed_); break;
    case control('T'): transpose(); break;
    case control('L'): clear_screen_ = true; break;
    case control('R'):
      searching_ = true;
      search_failed_ = false;
      query_.clear();
      before_search_ = text_;
      search_at_ = history_.entries().size();
      break;
    default: break;
  }
  return Event::none;
}

void LineEditor::on_escape(unsigned char byte) {
  switch (byte) {
    case 'b': cursor_ = word_left(cursor_); break;
    case 'f': cursor_ = word_right(cursor_); break;
    case 'd': kill(cursor_, word_right(cursor_), true); break;
    case control('H'):
    case kDelete: kill(word_left(cursor_), cursor_, false); break;
    case '\r':
    case '\n': insert("\n"); break;
    default: break;
  }
}

void LineEditor::on_csi(unsigned char final) {
  const bool with_control = pending_.ends_with(";5") || pending_.ends_with(";3");
  switch (final) {
    case 'A': move_vertically(-1); break;
    case 'B': move_vertically(1); break;
    case 'C': cursor_ = with_control ? word_right(cursor_) : right(cursor_); break;
    case 'D': cursor_ = with_control ? word_left(cursor_) : left(cursor_); break;
    case 'H': cursor_ = line_begin(cursor_); break;
    case 'F': cursor_ = line_end(cursor_); break;
    case '~':
      if (pending_ == "1" || pending_ == "7") cursor_ = line_begin(cursor_);
      if (pending_ == "4" || pending_ == "8") cursor_ = line_end(cursor_);
      if (pending_ == "3") erase(cursor_, right(cursor_));
      if (pending_ == "200") {
        input_ = Input::paste;
        pending_.clear();
      }
      break;
    default: break;
  }
}

void LineEditor::on_search(unsigned char byte, bool& handled) {
  handled = true;
  if (byte == control('R')) {
    search_again(true);
  } else if (byte == control('G') || byte == control('C')) {
    leave_search(true);
  } else if (byte == kDelete || byte == control('H')) {
    if (!query_.empty()) query_.resize(clusters(query_).back().begin);
    search_at_ = history_.entries().size();
    search_again(false);
  } else if (byte >= 0x20) {
    query_ += static_cast<char>(byte);
    search_again(false);
  } else {  // any other key takes the line found, then does what it does
    leave_search(false);
    handled = false;
  }
}

void LineEditor::search_again(bool older) {
  const std::vector<std::string>& entries = history_.entries();
  size_t at = std::min(search_at_ + (older ? 0 : 1), entries.size());
  while (at > 0) {
    --at;
    if (entries[at].find(query_) == std::string::npos) continue;
    search_at_ = at;
    search_failed_ = false;
    text_ = entries[at];
    cursor_ = text_.find(query_);
    return;
  }
  search_failed_ = true;
}

void LineEditor::leave_search(bool restore) {
  searching_ = false;
  if (restore) text_ = before_search_;
  cursor_ = text_.size();
}

void LineEditor::insert(std::string_view text) {
  if (text_.size() + text.size() > kTextBytesMax) return;
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineEditor::erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

// Kills in a row collect into one text, as in emacs.
void LineEditor::kill(size_t begin, size_t end, bool forward) {
  this_is_kill_ = true;
  const std::string part = text_.substr(begin, end - begin);
  if (!last_was_kill_) killed_.clear();
  killed_ = forward ? killed_ + part : part + killed_;
  erase(begin, end);
}

size_t LineEditor::left(size_t at) const {
  size_t before = 0;
  for (const Cluster& cluster : clusters(text_)) {
    if (cluster.end >= at) return cluster.begin < at ? cluster.begin : before;
    before = cluster.begin;
  }
  return before;
}

size_t LineEditor::right(size_t at) const {
  for (const Cluster& cluster : clusters(text_))
    if (cluster.end > at) return cluster.end;
  return text_.size();
}

size_t LineEditor::word_left(size_t at) const {
  while (at > 0 && !is_word_byte(text_[at - 1])) --at;
  while (at > 0 && is_word_byte(text_[at - 1])) --at;
  return at;
}

size_t LineEditor::word_right(size_t at) const {
  while (at < text_.size() && !is_word_byte(text_[at])) ++at;
  while (at < text_.size() && is_word_byte(text_[at])) ++at;
  return at;
}

size_t LineEditor::line_begin(size_t at) const {
  const size_t feed_at = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  return feed_at == std::string::npos ? 0 : feed_at + 1;
}

size_t LineEditor::line_end(size_t at) const { return std::min(text_.find('\n', at), text_.size()); }

void LineEditor::move_vertically(int direction) {
  const size_t begin = line_begin(cursor_), end = line_end(cursor_);
  if ((direction < 0 && begin == 0) || (direction > 0 && end == text_.size())) {
    browse(direction);
    return;
  }
  const int column = width_of(std::string_view(text_).substr(begin, cursor_ - begin));
  const size_t target = direction < 0 ? line_begin(begin - 1) : end + 1;
  const size_t target_end = line_end(target);
  int at = 0;
  cursor_ = target;
  for (const Cluster& cluster : clusters(std::string_view(text_).substr(target, target_end - target))) {
    if (at + cluster.width > column) break;
    at += cluster.width;
    cursor_ = target + cluster.end;
  }
}

void LineEditor::browse(int direction) {
  const std::vector<std::string>& entries = history_.entries();
  if (direction < 0 ? browsing_ == entries.size() : browsing_ == 0) return;
  if (browsing_ == 0) draft_ = text_;
  browsing_ = direction < 0 ? browsing_ + 1 : browsing_ - 1;
  text_ = browsing_ == 0 ? draft_ : entries[entries.size() - browsing_];
  cursor_ = text_.size();
}

void LineEditor::transpose() {
  const size_t begin = line_begin(cursor_);
  size_t middle = cursor_ == line_end(cursor_) ? left(cursor_) : cursor_;
  if (middle <= begin || cursor_ == begin) return;
  const size_t first = left(middle), end = right(middle);
  const std::string swapped = text_.substr(middle, end - middle) + text_.substr(first, middle - first);
  text_.replace(first, end - first, swapped);
  cursor_ = end;
}

bool LineEditor::wants_more() const {
  return text_.starts_with(kTripleQuote) && text_.find(kTripleQuote, kTripleQuote.size()) == std::string::npos;
}

LineEditor::Screen LineEditor::layout() const {
  Screen screen;
  std::string row = searching_ ? fmt::format("({}search: {}) ", search_failed_ ? "no match, " : "", query_) : prompt_;
  int width = 0;
  // A prompt wider than the terminal is cut, so that the arithmetic below holds.
  std::string shown;
  for (const Cluster& cluster : clusters(row)) {
    if (width + cluster.width > columns_ - 2) break;
    shown += row.substr(cluster.begin, cluster.end - cluster.begin);
    width += cluster.width;
  }
  row = shown;
  const auto next_row = [&](std::string start) {
    screen.rows.push_back(std::exchange(row, std::move(start)));
    screen.widths.push_back(std::exchange(width, width_of(row)));
  };
  const std::string continuation = width_of(continuation_) < columns_ - 2 ? continuation_ : "";
  const auto mark_cursor = [&] {
    screen.cursor_row = static_cast<int>(screen.rows.size());
    screen.cursor_column = width;
  };
  for (const Cluster& cluster : clusters(text_)) {
    std::string piece = text_.substr(cluster.begin, cluster.end - cluster.begin);
    int piece_width = cluster.width;
    if (piece == "\t") {
      piece.assign(4, ' ');
      piece_width = 4;
    } else if (piece.size() == 1 && (static_cast<unsigned char>(piece[0]) < 0x20 || piece[0] == kDelete) &&
               piece != "\n") {
      piece = {'^', static_cast<char>(piece[0] ^ 0x40)};
    }
    if (piece != "\n" && width + piece_width > columns_) next_row("");
    if (cluster.begin == cursor_) {
      if (width >= columns_) next_row("");  // only before a line feed
      mark_cursor();
    }
    if (piece == "\n") {
      next_row(continuation);
      continue;
    }
    row += piece;
    width += piece_width;
  }
  if (cursor_ == text_.size()) {
    if (width >= columns_) next_row("");
    mark_cursor();
  }
  screen.rows.push_back(row);
  screen.widths.push_back(width);
  return screen;
}

std::string LineEditor::render() { return draw(false); }
std::string LineEditor::render_end() { return draw(true); }

void LineEditor::forget_screen() {
  drawn_widths_.clear();
  drawn_column_ = 0;
}

std::string LineEditor::draw(bool at_end) {
  std::string out;
  if (clear_screen_) {
    out += "\x1b[H\x1b[2J";
    clear_screen_ = false;
    forget_screen();
  }
  // Up to the first row of the last drawing. A narrower terminal has folded rows that were drawn before.
  int up = 0;
  for (size_t i = 0; i < drawn_widths_.size(); ++i) {
    const int width = i + 1 == drawn_widths_.size() ? drawn_column_ : std::max(drawn_widths_[i] - 1, 0);
    up += width / columns_ + (i + 1 == drawn_widths_.size() ? 0 : 1);
  }
  out += "\r";
  if (up > 0) out += fmt::format("\x1b[{}A", up);
  out += "\x1b[J";

  const Screen screen = layout();
  const int count = static_cast<int>(screen.rows.size());
  const int cursor_row = at_end ? count - 1 : screen.cursor_row;
  // More rows than the terminal has: those around the cursor.
  const int top = std::clamp(cursor_row - rows_ + 2, 0, std::max(count - rows_, 0));
  const int bottom = std::min(top + rows_, count);
  for (int r = top; r < bottom; ++r) {
    if (r > top) out += "\r\n";
    out += screen.rows[static_cast<size_t>(r)];
  }
  if (at_end) {
    out += "\r\n";
    forget_screen();
    return out;
  }
  out += "\r";
  if (bottom - 1 > cursor_row) out += fmt::format("\x1b[{}A", bottom - 1 - cursor_row);
  if (screen.cursor_column > 0) out += fmt::format("\x1b[{}C", screen.cursor_column);
  drawn_widths_.assign(screen.widths.begin() + top, screen.widths.begin() + cursor_row + 1);
  drawn_column_ = screen.cursor_column;
  return out;
}

}  // namespace hearth::cli
