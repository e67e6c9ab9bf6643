// Where the work of one request ends, whatever happens in it: the thread goes on with the others'.
#pragma once
#include <chrono>
#include <new>
#include <thread>

#include "server/error_at_hand.h"

namespace hearth::server {

// How long memory is waited for: a second, unless a test has no time for it.
struct Patience {
  int tries = 50;
  std::chrono::milliseconds pause{20};
};

// Runs work(), which may be begun anew where it did not end: again while memory cannot be had, since others end and
// give some back. After that the process ends, and the front tells all that was asked of it. It waits, so it is not for
// the engine's thread (worker/unsaid.h).
template <class Work>
void surely(const Work& work, Patience patience = {}) {
  for (;; --patience.tries) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      if (patience.tries == 0) throw;
    }
    std::this_thread::sleep_for(patience.pause);
  }
}

// refuse(error), and without the reason where that is what cannot be told.
template <class Refuse>
void refuse_with(const Error& error, const Refuse& refuse) {
  try {
    refuse(error);
  } catch (const Error&) {
    refuse(Error(error.kind(), "the request failed, and why cannot be told"));
  }
}

// Runs work(). What it throws, memory that cannot be had too, goes to refuse(error), which ends the request: surely,
// so it may be called again where it did not end.
template <class Work, class Refuse>
void guarded(const Work& work, const Refuse& refuse, Patience patience = {}) {
  try {
    work();
  } catch (...) {
    with_error_at_hand([&](const Error& error) { surely([&] { refuse_with(error, refuse); }, patience); });
  }
}

}  // namespace hearth::server
