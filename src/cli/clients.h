// Programs that talk to a server, and what each must be told for it: settings of their own documentation, given by
// environment and arguments alone, so that none of their files changes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::cli {

struct Served {
  std::string url, key, model;     // "http://127.0.0.1:8080", without a path
  int64_t context = 0;             // positions; 0: not known yet
  std::filesystem::path folder{};  // for a file that a client reads
};

struct LaunchPlan {
  std::vector<std::pair<std::string, std::string>> set{};  // of the environment
  std::vector<std::string> unset{};                        // what would lead the client elsewhere
  std::vector<std::string> arguments{};                    // before those of the person
  std::filesystem::path file{};                            // to be written first; empty: none
  std::string file_text{};
};

struct Client {
  std::string_view name;     // as typed, and as found on PATH
  std::string_view package;  // of npm
  bool runs_scripts;         // while it is installed: it does not work without
  int64_t context_min;       // positions below which it is of little use
  LaunchPlan (*plan)(const Served& served);
};

std::span<const Client> clients();

std::string install_line(const Client& client);  // the command that a person installs it with

}  // namespace hearth::cli
