#include "cli/roofline.h"

#include <algorithm>
#include <future>

#include "base/team.h"
#include "probe/cpu_probe.h"

namespace hearth::cli {
namespace {

constexpr int64_t kBytesMin = 1 << 20, kBytesMax = int64_t{512} << 20;  // beyond that no cache helps

}  // namespace

Roofline measure_roofline(int threads, int64_t bytes) {
  // A team pins its caller for good: it gets a thread of its own.
  const auto measure = [&] {
    Team team(threads);
    Roofline roofline;
    roofline.read_gbps = probe::read_rate(team, threads, std::clamp(bytes, kBytesMin, kBytesMax) / 4096 * 4096, 5).gbps;
    for (const probe::Peak& peak : probe::peaks(team))
      if (peak.gops_all > roofline.peak_gops) {
        roofline.peak = peak.name;
        roofline.peak_gops = peak.gops_all;
      }
    return roofline;
  };
  return std::async(std::launch::async, measure).get();
}

}  // namespace hearth::cli
