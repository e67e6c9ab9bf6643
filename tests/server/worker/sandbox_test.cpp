// what a process may still do behind each of the two steps. Every probe runs in a child, which cannot leave the
// sandbox again.
#include "server/worker/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_use.h"
#include "support/temp_dir.h"

namespace hearth::server {
namespace {

using test::TempDir;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using Probes = std::map<std::string, std::function<long()>>;  // each returns -1 and sets errno when refused

// Name -> errno of each probe (0: it was let through), in a child behind `enter`.
std::map<std::string, int> errors_behind(const std::function<void()>& enter, const Probes& probes) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    std::ostringstream out;
    try {
      enter();
      for (const auto& [name, probe] : probes) {
        errno = 0;
        out << name << ' ' << (probe() < 0 ? errno : 0) << '\n';
      }
    } catch (const std::exception& e) {
      out << e.what() << '\n';
    }
    const std::string text = out.str();
    ::_exit(::write(pipe[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended by " << status << ": " << text;
  std::map<std::string, int> errors;
  std::istringstream lines(text);
  std::string name;
  for (int error; lines >> name >> error;) errors[name] = error;
  EXPECT_EQ(errors.size(), probes.size()) << text;
  return errors;
}

long open_file(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd;
}

// Two descriptors made outside, so that the calls themselves are seen to be refused.
struct Sockets {
  int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ~Sockets() { ::close(tcp); }
  sockaddr_in loopback() const {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(9);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
  }
};

Probes network_and_programs(const Sockets& sockets) {
  static const sockaddr_in address = sockets.loopback();
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  static char program[] = "/bin/true";
  static char* argv[] = {program, nullptr};
  const int fd = sockets.tcp;
  Probes probes = {
      {"socket", [] { return long{::socket(AF_INET, SOCK_STREAM, 0)}; }},
      {"socket_unix", [] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; }},
      {"socket_netlink", [] { return long{::socket(AF_NETLINK, SOCK_RAW, 0)}; }},
      {"connect", [fd, to] { return long{::connect(fd, to, sizeof address)}; }},
      {"bind", [fd, to] { return long{::bind(fd, to, sizeof address)}; }},
      {"listen", [fd] { return long{::listen(fd, 1)}; }},
      {"accept", [fd] { return long{::accept(fd, nullptr, nullptr)}; }},
      {"io_uring", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"execve", [] { return long{::execve(program, argv, argv + 1)}; }},
      {"pidfd_open", [] { return ::syscall(SYS_pidfd_open, ::getppid(), 0); }},
      {"unshare", [] { return ::syscall(SYS_unshare, 0); }},
      {"bpf", [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }},
  };
  if (kSanitized) return probes;  // the leak checker needs these
  probes["ptrace"] = [] { return ::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr); };
  probes["fork"] = [] { return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); };
  probes["kill"] = [] { return long{::kill(::getppid(), 0)}; };
  probes["tgkill"] = [] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0); };
  probes["read_memory"] = [] { return ::syscall(SYS_process_vm_readv, ::getppid(), nullptr, 0, nullptr, 0, 0); };
  return probes;
}

TEST(Sandbox, no_network_and_no_program_while_it_loads) {
  const Sockets sockets;
  const Probes probes = network_and_programs(sockets);
  ASSERT_GE(probes.size(), 10U);
  for (const auto& [name, error] : errors_behind([] { sandbox::enter_loading({}); }, probes))
    EXPECT_EQ(error, EPERM) << name;
}

TEST(Sandbox, the_probes_can_fail) {
  const Sockets sockets;
  const auto errors = errors_behind([] {}, {{"socket", [] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; }},
                                            {"open", [] { return open_file("/etc/passwd", O_RDONLY); }}});
  for (const auto& [name, error] : errors) EXPECT_EQ(error, 0) << name;
}

TEST(Sandbox, only_the_model_and_the_cache_are_open_while_it_loads) {
  const TempDir dir;
  const auto model = dir.write("model/a.gguf", "weights"), blob = dir.write("blobs/b", "blob");
  const auto secret = dir.write("secret/token", "hf_canary");
  std::filesystem::create_symlink(blob, dir.path() / "model/b.safetensors");
  std::filesystem::create_directories(dir.path() / "packed");
  std::filesystem::create_symlink(secret, dir.path() / "packed/link");
  const std::string parent = "/proc/" + std::to_string(::getpid());
  const auto enter = [&] {
    sandbox::enter_loading({.read = sandbox::model_paths(dir.path() / "model"), .write = {dir.path() / "packed"}});
  };
  const auto errors = errors_behind(
      enter, {
                 {"read_model", [&] { return open_file(model, O_RDONLY); }},
                 {"read_blob", [&] { return open_file(dir.path() / "model/b.safetensors", O_RDONLY); }},
                 {"list_model", [&] { return open_file(dir.path() / "model", O_RDONLY | O_DIRECTORY); }},
                 {"write_cache", [&] { return open_file(dir.path() / "packed/x", O_RDWR | O_CREAT | O_TRUNC); }},
                 {"xrename_cache",
                  [&] { return long{::rename((dir.path() / "packed/x").c_str(), (dir.path() / "packed/y").c_str())}; }},
                 {"yremove_cache", [&] { return long{::unlink((dir.path() / "packed/y").c_str())}; }},
                 {"use_cache", [&] { return io::if_unused(dir.path() / "packed", [] {}) ? 0L : -1L; }},
                 {"no_write_model", [&] { return open_file(model, O_WRONLY); }},
                 {"no_new_in_model", [&] { return open_file(dir.path() / "model/new", O_WRONLY | O_CREAT); }},
                 {"no_secret", [&] { return open_file(secret, O_RDONLY); }},
                 {"no_secret_by_link", [&] { return open_file(dir.path() / "packed/link", O_RDONLY); }},
                 {"no_passwd", [] { return open_file("/etc/passwd", O_RDONLY); }},
                 {"no_parent_environ", [&] { return open_file(parent + "/environ", O_RDONLY); }},
                 {"no_parent_memory", [&] { return open_file(parent + "/mem", O_RDONLY); }},
                 {"no_temp", [&] { return open_file(dir.path() / "new", O_WRONLY | O_CREAT); }},
             });
  for (const auto& [name, error] : errors) {
    if (name.starts_with("no_")) EXPECT_TRUE(error == EACCES || error == EPERM) << name << " " << error;
    else EXPECT_EQ(error, 0) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "packed/y"));
}

TEST(Sandbox, of_a_single_file_its_kind_comes_along) {
  const TempDir dir;
  const auto model = dir.write("m/a.gguf", "x"), part = dir.write("m/b.gguf", "x"), other = dir.write("m/id_rsa", "x");
  const auto errors = errors_behind([&] { sandbox::enter_loading({.read = sandbox::model_paths(model), .write = {}}); },
                                    {{"a", [&] { return open_file(model, O_RDONLY); }},
                                     {"b", [&] { return open_file(part, O_RDONLY); }},
                                     {"other", [&] { return open_file(other, O_RDONLY); }}});
  EXPECT_EQ(errors.at("a"), 0);
  EXPECT_EQ(errors.at("b"), 0);
  EXPECT_EQ(errors.at("other"), EACCES);
}

// Sanitizers open files at the program's end, so the second step leaves that open in their builds.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Sandbox, behind_the_load_no_file_opens_on_any_thread) {
  const TempDir dir;
  const auto model = dir.write("model/a.gguf", "weights");
  const auto open_on = [&](bool early) {
    // A thread from before the second step is bound by it as one from behind it is.
    return [&, early]() -> long {
      long result = 0;
      int error = 0;
      static std::thread* waiting = nullptr;
      static std::atomic<int> step{0};
      const auto probe = [&] {
        result = open_file(model, O_RDONLY);
        error = errno;
      };
      if (!early) {
        std::thread(probe).join();
      } else {
        waiting = new std::thread([&] {
          while (step == 0) std::this_thread::yield();
          probe();
        });
        sandbox::enter_serving();
        step = 1;
        waiting->join();
      }
      errno = error;
      return result;
    };
  };
  const auto enter = [&] {
    sandbox::enter_loading({.read = sandbox::model_paths(dir.path() / "model"), .write = {dir.path() / "packed"}});
  };
  const auto errors = errors_behind(
      enter, {
                 {"a_before", [&] { return open_file(model, O_RDONLY); }},
                 {"b_early_thread", open_on(true)},
                 {"c_main", [&] { return open_file(model, O_RDONLY); }},
                 {"d_late_thread", open_on(false)},
                 {"e_mkdir", [&] { return long{::mkdir((dir.path() / "packed/x").c_str(), 0700)}; }},
                 {"f_rename", [&] { return long{::rename(model.c_str(), (dir.path() / "packed/x").c_str())}; }},
                 {"g_unlink", [&] { return long{::unlink(model.c_str())}; }},
                 {"h_chmod", [&] { return long{::chmod(model.c_str(), 0777)}; }},
             });
  for (const auto& [name, error] : errors) EXPECT_EQ(error, name == "a_before" ? 0 : EACCES) << name;
}
#endif

TEST(Sandbox, memory_threads_and_aborts_still_work) {
  const auto errors = errors_behind(
      [] {
        sandbox::enter_loading({});
        sandbox::enter_serving();
      },
      {{"memory", [] { return std::vector<char>(64 << 20, 1).back() == 1 ? 0L : -1L; }},
       {"thread",
        [] {
          long done = -1;
          std::thread([&] { done = 0; }).join();
          return done;
        }},
       {"own_signal", [] { return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0); }},
       {"no_core", [] {
          rlimit core{};
          ::getrlimit(RLIMIT_CORE, &core);
          return core.rlim_cur == 0 && core.rlim_max == 0 ? 0L : -1L;
        }}});
  for (const auto& [name, error] : errors) EXPECT_EQ(error, 0) << name;
}

}  // namespace
}  // namespace hearth::server
