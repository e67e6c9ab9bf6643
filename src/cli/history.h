// Lines entered before, oldest first, kept in a file of mode 0600: one entry a line, with \n, \r and \\ escaped.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::cli {

class History {
 public:
  static constexpr size_t kEntriesMax = 1000;

  History() = default;                           // in memory only
  explicit History(std::filesystem::path file);  // reads it; an absent or unreadable file is an empty history

  const std::vector<std::string>& entries() const { return entries_; }

  // Appends unless it is blank or equals the newest entry. Writing the file is best effort: a full disk must not stop
  // a chat; last_error() tells.
  void add(const std::string& entry);
  const std::string& last_error() const { return last_error_; }

 private:
  std::filesystem::path file_;
  std::vector<std::string> entries_;
  size_t lines_in_file_ = 0;
  std::string last_error_;
};

}  // namespace hearth::cli
