#include "cli/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/fs.h"
#include "base/utf8.h"

namespace hearth::cli {
namespace {

std::string escaped(const std::string& entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\\') line += "\\\\";
    else if (c == '\n') line += "\\n";
    else if (c == '\r') line += "\\r";
    else line += c;
  }
  return line;
}

std::string unescaped(std::string_view line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      entry += line[i];
      continue;
    }
    const char c = line[++i];
    entry += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return entry;
}

}  // namespace

History::History(std::filesystem::path file) : file_(std::move(file)) {
  constexpr size_t kBytesMax = size_t{64} << 20;
  std::string text;
  try {
    text = io::real_fs().read_file(file_, kBytesMax);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) last_error_ = error.what();
    return;
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) entries_.push_back(repaired(unescaped(rest.substr(0, end))));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++lines_in_file_;
  }
  if (entries_.size() > kEntriesMax)
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kEntriesMax));
}

void History::add(const std::string& entry) {
  if (entry.find_first_not_of(" \t\n") == std::string::npos || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (entries_.size() > kEntriesMax) entries_.erase(entries_.begin());
  if (file_.empty()) return;
  try {
    io::real_fs().make_dirs(file_.parent_path());
    if (lines_in_file_ >= 2 * kEntriesMax) {
      std::string text;
      for (const std::string& each : entries_) text += escaped(each) + "\n";
      io::write_file_atomic(io::real_fs(), file_, text, 0600);
      lines_in_file_ = entries_.size();
      return;
    }
    // One write with O_APPEND, so that two chats at once do not mix within a line.
    const std::string line = escaped(entry) + "\n";
    const int fd = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const ssize_t n = fd < 0 ? -1 : ::write(fd, line.data(), line.size());
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (n != static_cast<ssize_t>(line.size()))
      fail(ErrorKind::io, "{}: {}", file_.string(), std::strerror(n < 0 ? error : ENOSPC));
    ++lines_in_file_;
  } catch (const Error& error) {
    last_error_ = error.what();
  }
}

}  // namespace hearth::cli
