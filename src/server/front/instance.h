// One server a state folder: its lock, its address and its session token, for the commands beside it.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace hearth::server {

struct InstanceInfo {
  pid_t pid = -1;
  std::string url, token;
};

// Held while the server runs; the lock goes with the process, whatever ends it.
class Instance {
 public:
  // Makes the folder (0700) and takes its lock. Throws Error{busy} naming the process that holds it.
  explicit Instance(std::filesystem::path folder);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const std::string& token() const { return token_; }  // 256 random bits, hex; of this run
  void publish(const std::string& url);                // files 0600: serve.lock with pid and url, session.token

 private:
  std::filesystem::path folder_;
  int fd_ = -1;
  std::string token_;
};

// The server that runs on that folder; nullopt: none does.
std::optional<InstanceInfo> find_instance(const std::filesystem::path& folder);

}  // namespace hearth::server
