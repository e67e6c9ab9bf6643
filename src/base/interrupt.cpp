#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <iterator>

#include "base/error.h"

namespace hearth {
namespace {

// A signal handler reaches only what is global.
std::atomic<bool> g_requested{false};
std::atomic<bool> g_installed{false};
static_assert(std::atomic<bool>::is_always_lock_free);
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction g_before[std::size(kSignals)];
size_t g_signals = 0;  // how many of them are taken

void on_interrupt(int) {
  if (g_requested.exchange(true)) ::_exit(130);
}

}  // namespace

Interrupt::Interrupt(Also also) {
  HEARTH_CHECK(!g_installed.exchange(true), "two Interrupt objects at a time");
  g_requested = false;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  g_signals = also == Also::termination ? std::size(kSignals) : 1;
  for (size_t i = 0; i < g_signals; ++i) {
    ::sigaction(kSignals[i], &action, &g_before[i]);
    // What the caller chose to ignore (nohup, a background job) stays ignored.
    if (g_before[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &g_before[i], nullptr);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < g_signals; ++i) ::sigaction(kSignals[i], &g_before[i], nullptr);
  g_installed = false;
}

bool Interrupt::requested() const { return g_requested.load(std::memory_order_acquire); }
void Interrupt::reset() { g_requested = false; }
const std::atomic<bool>& Interrupt::flag() { return g_requested; }
void Interrupt::request() { g_requested = true; }

}  // namespace hearth
