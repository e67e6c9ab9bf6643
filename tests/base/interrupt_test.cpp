#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace hearth {
namespace {

TEST(Interrupt, the_first_signal_asks_and_reset_answers) {
  Interrupt interrupt;
  EXPECT_FALSE(interrupt.requested());
  ::raise(SIGINT);
  EXPECT_TRUE(interrupt.requested());
  EXPECT_TRUE(interrupt.flag());
  interrupt.reset();
  EXPECT_FALSE(interrupt.requested());
  ::raise(SIGINT);
  EXPECT_TRUE(interrupt.requested());
}

TEST(Interrupt, a_new_one_starts_without_a_request) {
  {
    Interrupt interrupt;
    interrupt.request();
    EXPECT_TRUE(interrupt.requested());
  }
  Interrupt again;
  EXPECT_FALSE(again.requested());
}

TEST(Interrupt, the_second_signal_ends_the_process_with_130) {
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        ::raise(SIGINT);
        ::raise(SIGINT);
        std::exit(0);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(Interrupt, the_earlier_handler_returns) {
  static volatile sig_atomic_t calls = 0;
  struct sigaction action{}, before{};
  action.sa_handler = [](int) { calls = calls + 1; };
  ::sigaction(SIGINT, &action, &before);
  {
    Interrupt interrupt;
    ::raise(SIGINT);
    EXPECT_EQ(calls, 0);
  }
  ::raise(SIGINT);
  EXPECT_EQ(calls, 1);
  ::sigaction(SIGINT, &before, nullptr);
}

TEST(Interrupt, a_blocking_read_returns) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Interrupt interrupt;
  const pid_t child = ::fork();
  if (child == 0) {
    // Until the parent is told: the signal may come before its read blocks.
    for (int i = 0; i < 200; ++i) {
      ::usleep(20'000);
      if (i == 0) ::kill(::getppid(), SIGINT);
    }
    ::_exit(0);
  }
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_TRUE(interrupt.requested());
  ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace hearth
