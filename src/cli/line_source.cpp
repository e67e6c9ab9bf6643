#include "cli/line_source.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/text_width.h"

namespace hearth::cli {
namespace {

constexpr std::string_view kTripleQuote = "\"\"\"";

volatile sig_atomic_t window_changed = 0;
void on_window_change(int) { window_changed = 1; }

}  // namespace

bool PlainLines::read_line(std::string& line) {
  constexpr size_t kLineBytesMax = size_t{64} << 20;
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      break;
    }
    if (at_end_) {
      if (buffer_.empty()) return false;
      line = std::exchange(buffer_, {});
      break;
    }
    if (buffer_.size() > kLineBytesMax)
      fail(ErrorKind::invalid_argument, "a line of the input is longer than {} bytes", kLineBytesMax);
    char bytes[65536];
    const ssize_t n = ::read(fd_, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) return false;
    if (n < 0) fail(ErrorKind::io, "cannot read the input: {}", std::strerror(errno));
    if (n == 0) at_end_ = true;
    buffer_.append(bytes, static_cast<size_t>(n));
  }
  if (line.ends_with('\r')) line.pop_back();
  line = repaired(line);
  return true;
}

InputLine PlainLines::read(const std::string&) {
  std::string entry;
  if (!read_line(entry)) return {at_end_ ? InputLine::Kind::end : InputLine::Kind::interrupted, ""};
  while (entry.starts_with(kTripleQuote) && entry.find(kTripleQuote, kTripleQuote.size()) == std::string::npos) {
    std::string line;
    if (!read_line(line)) break;
    entry += "\n" + line;
  }
  return {InputLine::Kind::text, entry};
}

struct TerminalLines::Raw {
  explicit Raw(int descriptor) : fd(descriptor) { enter(); }
  ~Raw() { leave(); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void enter() {
    if (::tcgetattr(fd, &before) != 0) fail(ErrorKind::io, "cannot read the terminal's mode: {}", std::strerror(errno));
    termios raw = before;
    raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    // Not TCSAFLUSH: what was typed while the answer ran is kept.
    if (::tcsetattr(fd, TCSADRAIN, &raw) != 0)
      fail(ErrorKind::io, "cannot set the terminal's mode: {}", std::strerror(errno));
  }
  void leave() { ::tcsetattr(fd, TCSADRAIN, &before); }

  int fd;
  termios before{};
};

TerminalLines::TerminalLines(int in, int out, History& history)
    : in_(in), out_(out), history_(history), editor_(history) {
  struct sigaction action{};
  action.sa_handler = on_window_change;
  ::sigaction(SIGWINCH, &action, nullptr);
}

TerminalLines::~TerminalLines() { ::signal(SIGWINCH, SIG_DFL); }

void TerminalLines::put(const std::string& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::write(out_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(ErrorKind::io, "cannot write to the terminal: {}", std::strerror(errno));
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

void TerminalLines::fit_window() {
  window_changed = 0;
  winsize size{};
  if (::ioctl(out_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) editor_.resize(size.ws_col, size.ws_row);
}

InputLine TerminalLines::read(const std::string& prompt) {
  Raw raw(in_);
  put("\x1b[?2004h");  // bracketed paste
  try {
    InputLine line = edit(prompt, raw);
    put("\x1b[?2004l");
    return line;
  } catch (...) {
    put("\x1b[?2004l");
    throw;
  }
}

InputLine TerminalLines::edit(const std::string& prompt, Raw& raw) {
  editor_.begin(prompt, std::string(static_cast<size_t>(width_of(prompt)), ' '));
  fit_window();
  put(editor_.render());
  for (;;) {
    char bytes[4096];
    ssize_t n = 0;
    if (!typed_ahead_.empty()) {
      n = static_cast<ssize_t>(std::min(typed_ahead_.size(), sizeof(bytes)));
      std::memcpy(bytes, typed_ahead_.data(), static_cast<size_t>(n));
      typed_ahead_.erase(0, static_cast<size_t>(n));
    } else {
      n = ::read(in_, bytes, sizeof(bytes));
      if (n < 0 && errno == EINTR) {
        if (window_changed) {
          fit_window();
          put(editor_.render());
        }
        continue;
      }
      if (n <= 0) return {InputLine::Kind::end, ""};  // the terminal is gone
    }
    for (ssize_t i = 0; i < n; ++i) {
      const LineEditor::Event event = editor_.feed(bytes[i]);
      if (event == LineEditor::Event::none) continue;
      if (event == LineEditor::Event::suspend) {
        put(editor_.render_end());
        raw.leave();
        ::raise(SIGTSTP);
        raw.enter();
        fit_window();
        continue;
      }
      typed_ahead_.insert(0, bytes + i + 1, static_cast<size_t>(n - i - 1));
      put(editor_.render_end());
      if (event == LineEditor::Event::end) return {InputLine::Kind::end, ""};
      if (event == LineEditor::Event::interrupt) {
        if (editor_.text().empty()) return {InputLine::Kind::interrupted, ""};
        editor_.begin(prompt, std::string(static_cast<size_t>(width_of(prompt)), ' '));
        n = 0;
        break;
      }
      history_.add(editor_.text());
      return {InputLine::Kind::text, editor_.text()};
    }
    if (window_changed) fit_window();
    put(editor_.render());
  }
}

}  // namespace hearth::cli
