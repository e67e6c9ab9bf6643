#include "cli/input.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth::cli {

std::string read_stdin(size_t bytes_max) {
  std::string text;
  char bytes[65536];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::io, "cannot read standard input: {}", std::strerror(errno));
    if (n == 0) return text;
    text.append(bytes, static_cast<size_t>(n));
    if (text.size() > bytes_max) fail(ErrorKind::invalid_argument, "standard input has more than {} bytes", bytes_max);
  }
}

void require_utf8(std::string_view text, std::string_view what) {
  for (size_t at = 0; at < text.size();) {
    const size_t n = utf8_prefix(text.substr(at));
    if (n == 0) fail(ErrorKind::invalid_argument, "{} is not UTF-8 at byte {}", what, at);
    at += n;
  }
}

void refuse_empty_prompt() {
  fail(ErrorKind::invalid_argument, "the prompt is empty; hearth generate --raw begins a text from nothing");
}

std::string text_or_stdin(const std::string& text) { return text == "-" ? read_stdin() : text; }

}  // namespace hearth::cli
