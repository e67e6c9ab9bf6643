#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

// A handler can reach nothing but static storage.
std::atomic<bool> raised_flag{false};
struct sigaction previous;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  if (raised_flag.exchange(true)) ::_exit(130);
}

}  // namespace

Interrupt::Interrupt() {
  raised_flag = false;
  struct sigaction action{};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a blocking read returns
  HEARTH_CHECK(::sigaction(SIGINT, &action, &previous) == 0);
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &previous, nullptr); }

const std::atomic<bool>& Interrupt::flag() const { return raised_flag; }
void Interrupt::clear() { raised_flag = false; }

}  // namespace hearth::cli
