#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth {
namespace {

// A signal handler reaches only what is global.
std::atomic<bool> g_requested{false};
std::atomic<bool> g_installed{false};
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction g_before;

void on_interrupt(int) {
  if (g_requested.exchange(true)) ::_exit(130);
}

}  // namespace

Interrupt::Interrupt() {
  HEARTH_CHECK(!g_installed.exchange(true), "two Interrupt objects at a time");
  g_requested = false;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &g_before);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &g_before, nullptr);
  g_installed = false;
}

bool Interrupt::requested() const { return g_requested.load(std::memory_order_acquire); }
void Interrupt::reset() { g_requested = false; }
const std::atomic<bool>& Interrupt::flag() const { return g_requested; }
void Interrupt::request() { g_requested = true; }

}  // namespace hearth
