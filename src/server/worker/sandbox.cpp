#include "server/worker/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "server/seccomp_filter.h"

namespace hearth::server::sandbox {
namespace {

// The leak checker stops all threads by ptrace from a process of its own and reads /proc/self when the program ends.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// --- seccomp ---

// Anything that makes a socket or uses one but the wire, runs or reaches into another process, or gives a way around
// this filter (io_uring opens and connects without these numbers).
constexpr int kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_execve,
    SYS_execveat,
    SYS_fork,
    SYS_vfork,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_process_vm_writev,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_ptrace,
    SYS_process_vm_readv,
};
constexpr int kForTheLeakChecker[] = {SYS_ptrace, SYS_process_vm_readv, SYS_kill, SYS_tkill, SYS_open, SYS_openat};

// Whatever finds a file by its name to open or to change it.
constexpr int kFiles[] = {
    SYS_open,      SYS_openat,    SYS_openat2,     SYS_creat,        SYS_truncate, SYS_rename,    SYS_renameat,
    SYS_renameat2, SYS_unlink,    SYS_unlinkat,    SYS_rmdir,        SYS_mkdir,    SYS_mkdirat,   SYS_link,
    SYS_linkat,    SYS_symlink,   SYS_symlinkat,   SYS_mknod,        SYS_mknodat,  SYS_chmod,     SYS_fchmodat,
    SYS_chown,     SYS_lchown,    SYS_fchownat,    SYS_utime,        SYS_utimes,   SYS_futimesat, SYS_utimensat,
    SYS_setxattr,  SYS_lsetxattr, SYS_removexattr, SYS_memfd_create,
};

bool is_kept(int number) {
  for (const int kept : kForTheLeakChecker)
    if (kSanitized && kept == number) return true;
  return false;
}

void refuse(SeccompFilter& filter, int number, int error) {
  if (!is_kept(number)) filter.refuse(number, error);
}

// Threads, but no processes. The flags of clone3 lie in memory, out of sight: without it the C library takes clone.
void refuse_processes(SeccompFilter& filter) {
  refuse(filter, SYS_clone3, ENOSYS);
  if (!kSanitized) filter.refuse_without(SYS_clone, 0, CLONE_THREAD, EPERM);
}

// abort() is one; to threads of other processes none goes.
void refuse_foreign_signals(SeccompFilter& filter) {
  if (!kSanitized) filter.refuse_unless(SYS_tgkill, 0, static_cast<uint32_t>(::getpid()), EPERM);
}

// Typing into the terminal that the log goes to.
void refuse_typing(SeccompFilter& filter) {
  filter.refuse_if(SYS_ioctl, 1, TIOCSTI, EPERM);
  filter.refuse_if(SYS_ioctl, 1, TIOCLINUX, EPERM);
}

// --- Landlock, by its numbers: headers are older than kernels ---

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1, kBeneath = 1;

struct Ruleset {
  uint64_t files = 0, net = 0, scoped = 0;
};
struct __attribute__((packed)) BeneathRule {
  uint64_t allowed = 0;
  int32_t folder = -1;
};
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kTruncate = 1 << 14, kDevices = 1 << 15;
constexpr uint64_t kFirstFiles = (1 << 13) - 1;                         // all of the first version
constexpr uint64_t kMakeAndRemove = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8;  // folders and ordinary files

// What each version added: 2 moving between folders, 3 truncation, 4 TCP, 5 ioctl on devices, 6 signals and abstract
// sockets outside.
Ruleset everything(long version) {
  Ruleset r{.files = kFirstFiles};
  if (version >= 2) r.files |= 1 << 13;
  if (version >= 3) r.files |= kTruncate;
  if (version >= 4) r.net = 3;
  if (version >= 5) r.files |= kDevices;
  if (version >= 6) r.scoped = 3;
  return r;
}

size_t size_of_ruleset(long version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

void allow(int ruleset, const std::filesystem::path& path, uint64_t access) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;  // what is not there needs no leave
  struct stat info{};
  const bool is_folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  const BeneathRule rule{.allowed = is_folder ? access : access & (kExecute | kWriteFile | kReadFile | kTruncate),
                         .folder = fd};
  const long r = ::syscall(kAddRule, ruleset, kBeneath, &rule, 0);
  const int error = errno;
  ::close(fd);
  if (r != 0) fail(ErrorKind::io, "Landlock takes no rule for {}: {}", path.string(), std::strerror(error));
}

void restrict_files(const Paths& paths) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) {
    log::warn("worker", "this kernel has no Landlock ({}): while it loads, the worker can open every file of its user",
              std::strerror(errno));
    return;
  }
  const Ruleset all = everything(version);
  const int ruleset = static_cast<int>(::syscall(kCreateRuleset, &all, size_of_ruleset(version), 0));
  if (ruleset < 0) fail(ErrorKind::io, "Landlock takes no rules: {}", std::strerror(errno));
  constexpr uint64_t kRead = kReadFile | kReadDir;
  // How much memory and how many cores there are, in which time zone, and what the C library looks up by itself.
  for (const char* path : {"/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys/vm", "/sys",
                           "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale", "/dev/urandom", "/dev/null"})
    allow(ruleset, path, kRead);
  for (const std::filesystem::path& path : paths.read) allow(ruleset, path, kRead);
  for (const std::filesystem::path& path : paths.write)
    allow(ruleset, path, (kRead | kWriteFile | kMakeAndRemove | kTruncate) & all.files);
  const long r = ::syscall(kRestrictSelf, ruleset, 0);
  const int error = errno;
  ::close(ruleset);
  if (r != 0) fail(ErrorKind::io, "Landlock does not hold: {}", std::strerror(error));
}

}  // namespace

std::vector<std::filesystem::path> model_paths(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::vector<fs::path> list;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  list.push_back(path);
  fs::path folder = is_folder ? path : path.parent_path();
  if (folder.empty()) folder = ".";
  // A folder's own files come with it, those behind its links do not; of the neighbours of a file only its kind does.
  const auto look = [&](const auto& entry) {
    const bool counts = is_folder ? entry.is_symlink(ignored) : entry.path().extension() == path.extension();
    if (counts && entry.is_regular_file(ignored)) list.push_back(entry.path());
  };
  if (is_folder)
    for (fs::recursive_directory_iterator it(folder, ignored), end; it != end && !ignored; it.increment(ignored))
      look(*it);
  else
    for (fs::directory_iterator it(folder, ignored), end; it != end && !ignored; it.increment(ignored)) look(*it);
  return list;
}

void enter_loading(const Paths& paths) {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};  // a core file would hold prompts
  if (::setrlimit(RLIMIT_CORE, &none) != 0) fail(ErrorKind::io, "RLIMIT_CORE: {}", std::strerror(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(ErrorKind::io, "no_new_privs: {}", std::strerror(errno));
  if (kSanitized)
    log::warn("worker", "a build with sanitizers: the leak checker may start processes, trace and open files");
  restrict_files(paths);
  SeccompFilter filter;
  for (const int number : kRefused) refuse(filter, number, EPERM);
  refuse_processes(filter);
  refuse_foreign_signals(filter);
  refuse_typing(filter);
  filter.apply();
}

void enter_serving() {
  SeccompFilter filter;
  for (const int number : kFiles) refuse(filter, number, EACCES);
  filter.apply();
}

}  // namespace hearth::server::sandbox
