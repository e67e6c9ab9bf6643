#include "cli/programs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/spawn.h"
#include "net/listen.h"

namespace hearth::cli {
namespace {

constexpr size_t kErrorsMax = 16 << 10;

pid_t spawn(const std::vector<std::string>& words, int output, int errors, bool own_session) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (const auto& [fd, from] : {std::pair(STDOUT_FILENO, output), {STDERR_FILENO, errors}})
    if (from < 0) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    else posix_spawn_file_actions_adddup2(&files, from, fd);
  const SpawnAttributes attributes(own_session ? POSIX_SPAWN_SETSID : 0);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0].c_str(), &files, attributes.get(), pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) fail(ErrorKind::io, "{}: {}", words[0], std::strerror(error));
  return pid;
}

}  // namespace

bool is_executable(const std::filesystem::path& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0;
}

std::filesystem::path find_program(const hub::Env& env, std::string_view name) {
  const std::string path = env("PATH").value_or("");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::filesystem::path file = std::filesystem::path(path.substr(at, end - at)) / name;
    if (file.is_absolute() && is_executable(file)) return file;
    at = end + 1;
  }
  return {};
}

ProgramEnd run_program(const std::vector<std::string>& words) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) fail(ErrorKind::io, "pipe: {}", std::strerror(errno));
  const net::Descriptor reads(pipe[0]);
  net::Descriptor writes(pipe[1]);
  const pid_t pid = spawn(words, STDERR_FILENO, writes.get(), false);
  writes = {};
  ProgramEnd end;
  char piece[4096];
  for (ssize_t n = 0; (n = ::read(reads.get(), piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) end.errors.append(piece, static_cast<size_t>(n));
    if (end.errors.size() > 2 * kErrorsMax) end.errors.erase(0, end.errors.size() - kErrorsMax);
  }
  if (end.errors.size() > kErrorsMax) end.errors.erase(0, end.errors.size() - kErrorsMax);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

pid_t start_program(const std::vector<std::string>& words, int output) { return spawn(words, output, output, true); }

}  // namespace hearth::cli
