// System calls that a process gives up for good (seccomp(2)): a classic BPF program over the number and the arguments
// of each. x86-64 alone; calls by 32-bit numbers end the process, those by x32 numbers are refused.
#pragma once
#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::server {

// A refused call fails with `error` (an errno). Of an argument, counted from 0, the low 32 bits are looked at.
class SeccompFilter {
 public:
  SeccompFilter();

  void refuse(int number, int error);
  void refuse_if(int number, int argument, uint32_t value, int error);
  void refuse_unless(int number, int argument, uint32_t value, int error);
  void refuse_without(int number, int argument, uint32_t bits, int error);  // where none of them is set

  // For all threads of the process and what they start. Sets no_new_privs. Throws Error{io}.
  void apply();

 private:
  enum class Refuse : uint8_t { if_true, if_false };

  void load(size_t offset);
  void answer(uint32_t action);
  void refuse_by(int number, int argument, uint16_t test, uint32_t value, Refuse when, int error);

  std::vector<sock_filter> code_;
};

}  // namespace hearth::server
