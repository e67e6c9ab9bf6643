#include "cli/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace hearth::cli {

size_t descriptors_for(size_t connections) {
  constexpr size_t kRefusals = 64, kOwn = 192;  // listeners, workers and their pipes, files, the log
  return connections + kRefusals + kOwn;
}

size_t allow_descriptors(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < wanted) {
    const rlimit raised{.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max), .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return static_cast<size_t>(limit.rlim_cur);
}

}  // namespace hearth::cli
