// Ctrl-C: the first one asks for a stop, a second one before the first was answered ends the process.
#pragma once
#include <atomic>

namespace hearth {

// While one lives, SIGINT sets a flag instead of ending the process; the handler that was there before returns with the
// destructor. At most one at a time. Blocking calls return EINTR (no SA_RESTART), so a prompt notices at once.
//
//   Interrupt interrupt;
//   while (!interrupt.requested() && step()) {}
//   if (interrupt.requested()) { keep_state(); interrupt.reset(); }
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;  // any thread
  void reset();            // the request was answered: the next SIGINT asks again
  // For loops that take a cancel flag; true once a stop was asked for.
  const std::atomic<bool>& flag() const;
  // As if SIGINT had arrived once (a UI's stop key, tests).
  void request();
};

}  // namespace hearth
