#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace hearth {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::busy: return "busy";
    case ErrorKind::out_of_memory: return "out_of_memory";
    case ErrorKind::corrupt_file: return "corrupt_file";
    case ErrorKind::io: return "io";
    case ErrorKind::device_lost: return "device_lost";
    case ErrorKind::cancelled: return "cancelled";
  }
  return "unknown";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return 2;
    case ErrorKind::not_found: return 3;
    case ErrorKind::out_of_memory: return 4;
    case ErrorKind::cancelled: return 130;
    default: return 1;
  }
}

namespace detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "hearth: bug: %s at %s:%d %s\n", condition, file, line, message.c_str());
  std::abort();
}

}  // namespace detail
}  // namespace hearth
