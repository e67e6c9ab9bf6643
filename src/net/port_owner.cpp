#include "net/port_owner.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace hearth::net {
namespace {

namespace fs = std::filesystem;

// "socket:[inode]" of the listeners on that port.
std::set<std::string> listeners(int port) {
  constexpr std::string_view kListens = "0A";
  constexpr size_t kAddress = 1, kState = 3, kInode = 9;
  std::set<std::string> links;
  for (const char* name : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);  // names of the columns
    while (std::getline(file, line)) {
      std::istringstream text(line);
      std::vector<std::string> words;
      for (std::string word; text >> word && words.size() <= kInode;) words.push_back(std::move(word));
      if (words.size() <= kInode || words[kState] != kListens) continue;
      const std::string_view digits = std::string_view(words[kAddress]).substr(words[kAddress].find(':') + 1);
      unsigned number = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
      if (number == static_cast<unsigned>(port)) links.insert(fmt::format("socket:[{}]", words[kInode]));
    }
  }
  return links;
}

bool holds(const fs::path& process, const std::set<std::string>& links) {
  std::error_code error;
  for (fs::directory_iterator it(process / "fd", error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (links.contains(fs::read_symlink(it->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string owner_of_port(int port) {
  const std::set<std::string> links = listeners(port);
  std::error_code error;
  if (!links.empty())
    for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
      const std::string pid = it->path().filename().string();
      if (std::isdigit(static_cast<unsigned char>(pid[0])) == 0 || !holds(it->path(), links)) continue;
      std::string program;
      std::ifstream file(it->path() / "comm");
      std::getline(file, program);
      return fmt::format("process {} ({})", pid, program);
    }
  return "";
}

}  // namespace hearth::net
