// Where the work of one request ends, whatever happens in it: the thread goes on with the others'.
#pragma once
#include <chrono>
#include <new>
#include <thread>

#include "server/error_at_hand.h"

namespace hearth::server {

// Runs work(), which may be begun anew where it did not end: again while memory cannot be had, since others end and
// give some back. After a second of that the process ends, and the front tells all that was asked of it.
template <class Work>
void surely(const Work& work) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kPause{20};
  for (int left = kTries;; --left) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      if (left == 0) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Runs work(). What it throws, memory that cannot be had too, goes to refuse(error), which ends the request: surely,
// so it may be called again where it did not end, and without the reason where that is what cannot be told.
template <class Work, class Refuse>
void guarded(const Work& work, const Refuse& refuse) {
  const auto tell = [&](const Error& error) {
    try {
      refuse(error);
    } catch (const Error&) {
      refuse(Error(error.kind(), "the request failed, and why cannot be told"));
    }
  };
  try {
    work();
  } catch (...) {
    with_error_at_hand([&](const Error& error) { surely([&] { tell(error); }); });
  }
}

}  // namespace hearth::server
