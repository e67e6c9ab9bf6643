// A team of pinned kernel threads: spin 50 us for the next job, then park. The caller is member 0.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace hearth {

// CPUs of the process's affinity mask, as it was when this or a team was first asked for: a team pins its caller, whose
// mask afterwards names one CPU. At least 1.
int cpus_allowed();

class Team {
 public:
  // threads >= 1. Members are pinned to distinct CPUs of the process's affinity mask where there are enough.
  // Throws Error{busy} when the system refuses a thread.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return threads_; }

  // Calls f(member) once on every member, member in [0, size()), and returns when all are done. f must not throw.
  // One caller at a time; not re-entrant. Allocates nothing.
  template <class F>
  void run(F&& f) {
    using Fn = std::remove_reference_t<F>;
    run_raw([](void* context, int member) { (*static_cast<Fn*>(context))(member); },
            const_cast<void*>(static_cast<const void*>(&f)));
  }

  // Inside run(): returns once every member has arrived. Spins.
  void barrier(int member);

 private:
  using Job = void (*)(void* context, int member);
  void run_raw(Job job, void* context);
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
