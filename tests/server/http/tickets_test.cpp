// what a page shows in place of its credential.
#include "server/http/tickets.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth::server::test {
namespace {

TEST(Tickets, are_good_once) {
  FakeClock clock;
  Tickets tickets(clock);
  const std::string mine = tickets.issue({"me", "my key"}), other = tickets.issue({"you", ""});
  EXPECT_EQ(mine.size(), 64u);
  EXPECT_FALSE(tickets.take(mine.substr(1)));
  EXPECT_FALSE(tickets.take(""));
  const auto bearer = tickets.take(mine);
  ASSERT_TRUE(bearer);
  EXPECT_EQ(bearer->holder, "me");
  EXPECT_EQ(bearer->owner, "my key");
  EXPECT_FALSE(tickets.take(mine)) << "used";
  EXPECT_EQ(tickets.take(other)->holder, "you");
}

TEST(Tickets, are_good_for_thirty_seconds) {
  FakeClock clock;
  Tickets tickets(clock);
  const std::string kept = tickets.issue({"me", ""});
  clock.advance(std::chrono::seconds(30));
  EXPECT_TRUE(tickets.take(kept));
  const std::string late = tickets.issue({"me", ""});
  clock.advance(std::chrono::milliseconds(30'001));
  EXPECT_FALSE(tickets.take(late));
}

TEST(Tickets, are_bounded_and_never_the_same) {
  FakeClock clock;
  Tickets tickets(clock);
  std::set<std::string> seen;
  const std::string first = tickets.issue({"me", ""});
  std::string second = tickets.issue({"me", ""});
  for (size_t i = 0; i < Tickets::kMost - 1; ++i) seen.insert(tickets.issue({"me", ""}));
  EXPECT_EQ(seen.size(), Tickets::kMost - 1);
  EXPECT_FALSE(tickets.take(first)) << "the oldest made room";
  EXPECT_TRUE(tickets.take(second));
}

}  // namespace
}  // namespace hearth::server::test
