// Ctrl-C: the first one asks for a stop, a second one before the first was answered ends the process.
#pragma once
#include <atomic>
#include <cstdint>

namespace hearth {

// While one lives, SIGINT sets a flag instead of ending the process; the handler that was there before returns with the
// destructor; one that was ignored stays ignored. At most one at a time. Blocking calls return EINTR (no SA_RESTART),
// so a prompt notices at once.
//
//   Interrupt interrupt;
//   while (!interrupt.requested() && step()) {}
//   if (interrupt.requested()) { keep_state(); interrupt.reset(); }
class Interrupt {
 public:
  enum class Also : uint8_t { nothing, termination };  // SIGTERM and SIGHUP too: where a temporary is to be taken away
  explicit Interrupt(Also also = Also::nothing);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;  // any thread
  void reset();            // the request was answered: the next SIGINT asks again
  // For loops that take a cancel flag; true once a stop was asked for. It may be handed out before an object is there:
  // until then SIGINT does what it did.
  static const std::atomic<bool>& flag();
  // As if SIGINT had arrived once (a UI's stop key, tests).
  void request();
};

}  // namespace hearth
