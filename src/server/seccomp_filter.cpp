#include "server/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hearth::server {
namespace {

constexpr uint32_t kOtherNumbers = 0x40000000;  // the x32 names of the same calls

}  // namespace

SeccompFilter::SeccompFilter() {
  load(offsetof(seccomp_data, arch));
  code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  answer(SECCOMP_RET_KILL_PROCESS);  // numbers of 32-bit programs mean other calls
  load(offsetof(seccomp_data, nr));
  code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOtherNumbers, 0, 1));
  answer(SECCOMP_RET_ERRNO | EPERM);
}

void SeccompFilter::refuse(int number, int error) {
  code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
  answer(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
}

void SeccompFilter::refuse_if(int number, int argument, uint32_t value, int error) {
  refuse_by(number, argument, BPF_JEQ, value, Refuse::if_true, error);
}

void SeccompFilter::refuse_unless(int number, int argument, uint32_t value, int error) {
  refuse_by(number, argument, BPF_JEQ, value, Refuse::if_false, error);
}

void SeccompFilter::refuse_without(int number, int argument, uint32_t bits, int error) {
  refuse_by(number, argument, BPF_JSET, bits, Refuse::if_false, error);
}

void SeccompFilter::refuse_by(int number, int argument, uint16_t test, uint32_t value, Refuse when, int error) {
  const auto jump = static_cast<uint16_t>(BPF_JMP | test | BPF_K);
  const uint8_t past_if_true = when == Refuse::if_true ? 0 : 1, past_if_false = when == Refuse::if_true ? 1 : 0;
  code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4));
  load(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(argument));
  code_.push_back(BPF_JUMP(jump, value, past_if_true, past_if_false));
  answer(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  load(offsetof(seccomp_data, nr));
}

void SeccompFilter::apply() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(ErrorKind::io, "no_new_privs: {}", std::strerror(errno));
  answer(SECCOMP_RET_ALLOW);
  const sock_fprog program{.len = static_cast<unsigned short>(code_.size()), .filter = code_.data()};
  if (const long r = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program); r != 0)
    fail(ErrorKind::io, "the kernel takes no seccomp filter: {}",
         r > 0 ? fmt::format("thread {} has another one", r) : std::strerror(errno));
}

void SeccompFilter::load(size_t offset) {
  code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
}

void SeccompFilter::answer(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

}  // namespace hearth::server
