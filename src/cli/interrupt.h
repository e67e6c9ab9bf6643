// Ctrl-C: the first one asks for an orderly end, the second one ends the process at once (exit code 130).
#pragma once
#include <atomic>

namespace hearth::cli {

// Installs the SIGINT handler for its lifetime; the flag starts false. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;
  bool raised() const { return flag().load(); }
  void clear();  // the next Ctrl-C is a first one again
};

}  // namespace hearth::cli
