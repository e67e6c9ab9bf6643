#include "base/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace hearth {
namespace {

void pause() { __builtin_ia32_pause(); }

// The CPUs that the process may use, as they were when its first team was made: a caller that a team has pinned would
// report its one CPU ever after.
const std::vector<int>& allowed_cpus() {
  static const std::vector<int> cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> found;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
      for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) found.push_back(i);
    return found;
  }();
  return cpus;
}

void pin(pthread_t thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

constexpr auto kSpin = std::chrono::microseconds(50);

// Waits for a member that is at work: spins, and gives the CPU away once the wait is long, because then the other
// member may be waiting for this very CPU.
template <class Done>
void spin_until(Done done) {
  constexpr int kPausesBeforeYield = 2000;
  for (int i = 0; !done(); ++i) {
    if (i < kPausesBeforeYield) pause();
    else sched_yield();
  }
}

}  // namespace

int cpus_allowed() { return std::max(1, static_cast<int>(allowed_cpus().size())); }

struct Team::State {
  struct alignas(64) Line {
    std::atomic<uint32_t> value{0};
  };
  // The epoch is the futex word of parked workers; `parked` counts them.
  Line epoch, parked, arrived, phase;
  std::vector<Line> done;
  Job job = nullptr;
  void* context = nullptr;
  std::vector<std::thread> workers;

  explicit State(int threads) : done(static_cast<size_t>(threads)) {}

  uint32_t wait_for_job(uint32_t seen) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    for (int i = 0; epoch.value.load(std::memory_order_acquire) == seen; ++i) {
      pause();
      if (i % 64 == 63 && std::chrono::steady_clock::now() > deadline) {
        parked.value.fetch_add(1, std::memory_order_seq_cst);
        while (epoch.value.load(std::memory_order_seq_cst) == seen)
          syscall(SYS_futex, reinterpret_cast<uint32_t*>(&epoch.value), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        parked.value.fetch_sub(1, std::memory_order_seq_cst);
      }
    }
    return seen + 1;
  }

  void start_job(Job next, void* next_context) {
    job = next;
    context = next_context;
    epoch.value.fetch_add(1, std::memory_order_seq_cst);
    if (parked.value.load(std::memory_order_seq_cst) > 0)
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&epoch.value), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  }
};

Team::Team(int threads) : threads_(threads) {
  if (threads < 1) fail(ErrorKind::invalid_argument, "threads: {} given, at least 1 is needed", threads);
  state_ = std::make_unique<State>(threads);
  const std::span<const int> cpus = allowed_cpus();
  const bool pinned = threads > 1 && cpus.size() >= static_cast<size_t>(threads);
  if (pinned) pin(pthread_self(), cpus.first(1));
  for (int member = 1; member < threads; ++member) {
    const auto work = [state = state_.get(), member] {
      for (uint32_t seen = 0;;) {
        seen = state->wait_for_job(seen);
        if (!state->job) return;
        state->job(state->context, member);
        state->done[static_cast<size_t>(member)].value.store(seen, std::memory_order_release);
      }
    };
    try {
      state_->workers.emplace_back(work);
    } catch (const std::system_error& error) {  // those that run must end first: their destructor would abort
      state_->start_job(nullptr, nullptr);
      for (std::thread& worker : state_->workers) worker.join();
      fail(ErrorKind::busy, "thread {} of {} cannot be made: {}; lower --threads", member + 1, threads,
           std::strerror(error.code().value()));
    }
    // A thread starts with its maker's mask, which may be one CPU: set it either way.
    pin(state_->workers.back().native_handle(), pinned ? cpus.subspan(static_cast<size_t>(member), 1) : cpus);
  }
}

Team::~Team() {
  state_->start_job(nullptr, nullptr);
  for (std::thread& worker : state_->workers) worker.join();
}

void Team::run_raw(Job job, void* context) {
  if (threads_ == 1) return job(context, 0);
  state_->start_job(job, context);
  const uint32_t epoch = state_->epoch.value.load(std::memory_order_relaxed);
  job(context, 0);
  for (int member = 1; member < threads_; ++member)
    spin_until(
        [&] { return state_->done[static_cast<size_t>(member)].value.load(std::memory_order_acquire) == epoch; });
}

void Team::barrier(int) {
  if (threads_ == 1) return;
  State& s = *state_;
  const uint32_t phase = s.phase.value.load(std::memory_order_acquire);
  if (s.arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(threads_)) {
    s.arrived.value.store(0, std::memory_order_relaxed);
    s.phase.value.store(phase + 1, std::memory_order_release);
  } else {
    spin_until([&] { return s.phase.value.load(std::memory_order_acquire) != phase; });
  }
}

}  // namespace hearth
