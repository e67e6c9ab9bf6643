#include "probe/cpu_probe.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "probe/peak_loops.h"

namespace hearth::probe {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Quantiles {
  double median, spread;
};
Quantiles quantiles(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return {v[n / 2], (v[std::min(n - 1, n * 9 / 10)] - v[n / 10]) / v[n / 2]};
}

class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) fail(ErrorKind::out_of_memory, "the probe cannot map {} bytes", bytes);
    madvise(data_, bytes_, MADV_HUGEPAGE);
    std::memset(data_, 1, bytes_);  // every page exists, none is the shared zero page
  }
  ~Buffer() { munmap(data_, bytes_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  void* data_;
  size_t bytes_;
};

}  // namespace

ReadRate read_rate(Team& team, int threads, int64_t bytes, int runs) {
  const Buffer buffer(bytes);
  const int64_t share = bytes / threads / 4096 * 4096;
  const int loops = static_cast<int>(std::max<int64_t>(1, 64'000'000 / bytes));
  std::vector<double> seconds;
  for (int r = 0; r <= runs; ++r) {
    const double start = now();
    team.run([&](int member) {
      if (member < threads)
        for (int l = 0; l < loops; ++l) read_bytes(buffer.data() + member * share, share);
    });
    if (r > 0) seconds.push_back(now() - start);  // the first warms up
  }
  const Quantiles q = quantiles(seconds);
  return {threads, bytes, static_cast<double>(share) * threads * loops / q.median / 1e9, q.spread};
}

std::vector<Peak> peaks(Team& team) {
  std::vector<Peak> list;
  for (const PeakLoop& loop : peak_loops()) {
    const auto rate = [&](int threads) {
      double best = 0;
      for (int r = 0; r < 5; ++r) {
        const double start = now();
        team.run([&](int member) {
          if (member < threads) loop.run(kPeakIterations);
        });
        best = std::max(best, loop.ops_per_iteration * kPeakIterations * threads / (now() - start) / 1e9);
      }
      return best;
    };
    list.push_back({loop.name, rate(1), rate(team.size())});
  }
  return list;
}

TeamCost team_cost(Team& team) {
  constexpr int kRounds = 20000;
  TeamCost cost;
  std::vector<double> barrier, fork;
  for (int r = 0; r < 5; ++r) {
    double start = now();
    team.run([&](int member) {
      for (int i = 0; i < kRounds; ++i) team.barrier(member);
    });
    barrier.push_back((now() - start) / kRounds * 1e9);
    start = now();
    for (int i = 0; i < kRounds / 4; ++i) team.run([](int) {});
    fork.push_back((now() - start) / (kRounds / 4) * 1e9);
  }
  cost.barrier_ns = quantiles(barrier).median;
  cost.fork_join_ns = quantiles(fork).median;
  return cost;
}

double clock_ghz() {
  double best = 1e9;
  for (int r = 0; r < 10; ++r) {
    const double start = now();
    dependent_adds();
    best = std::min(best, now() - start);
  }
  return static_cast<double>(kDependentAdds) / best / 1e9;
}

}  // namespace hearth::probe
