#include "base/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/scale.h"

namespace hearth {
namespace {

using test::scaled;

std::vector<int> cpus_of_caller() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  return cpus;
}

TEST(Team, refuses_fewer_than_one_thread) {
  for (const int threads : {0, -1}) try {
      Team team(threads);
      ADD_FAILURE() << threads << " threads accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(std::to_string(threads)), std::string::npos) << error.what();
    }
}

TEST(Team, a_pinned_caller_still_knows_how_many_cpus_it_may_use) {
  const int before = cpus_allowed();
  EXPECT_GE(before, 1);
  std::thread([before] {  // keeps its mask to itself
    const Team team(before);
    EXPECT_EQ(cpus_of_caller().size(), 1u);
    EXPECT_EQ(cpus_allowed(), before);
  })
      .join();
}

TEST(Team, calls_every_member_once_and_the_caller_is_member_0) {
  for (int threads = 1; threads <= 4; ++threads) {
    Team team(threads);
    ASSERT_EQ(team.size(), threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    std::vector<std::thread::id> ids(static_cast<size_t>(threads));
    team.run([&](int member) {
      ++calls[static_cast<size_t>(member)];
      ids[static_cast<size_t>(member)] = std::this_thread::get_id();
    });
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), 1));
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), ids.size());
  }
}

// Plain (not atomic) memory: what a job writes is visible to the caller after run, and to every member of the next job.
TEST(Team, many_short_jobs_lose_none_and_publish_their_writes) {
  Team team(2);
  const auto jobs = scaled(100'000);
  int64_t sums[2] = {0, 0};
  int64_t seen_by_other[2] = {0, 0};
  for (int64_t job = 1; job <= jobs; ++job) {
    team.run([&](int member) { sums[member] += job; });
    ASSERT_EQ(sums[0], sums[1]) << "job " << job;
    if (job % 64 == 0) team.run([&](int member) { seen_by_other[member] = sums[1 - member]; });
  }
  EXPECT_EQ(sums[0], jobs * (jobs + 1) / 2);
  const int64_t last = jobs / 64 * 64;
  EXPECT_EQ(seen_by_other[0], last * (last + 1) / 2);
  EXPECT_EQ(seen_by_other[1], seen_by_other[0]);
}

TEST(Team, barrier_separates_phases) {
  Team team(2);
  const auto rounds = scaled(20'000);
  std::vector<int> cells(2);
  std::atomic<int> wrong{0};
  team.run([&](int member) {
    for (int round = 1; round <= rounds; ++round) {
      cells[static_cast<size_t>(member)] = round;
      team.barrier(member);
      if (cells[static_cast<size_t>(1 - member)] != round) ++wrong;
      team.barrier(member);
    }
  });
  EXPECT_EQ(wrong, 0);
}

// More members than CPUs: slow, but nothing may hang.
TEST(Team, barrier_works_with_more_members_than_cpus) {
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 1;
  Team team(threads);
  std::atomic<int> arrived{0}, wrong{0};
  team.run([&](int member) {
    for (int round = 1; round <= 5; ++round) {
      ++arrived;
      team.barrier(member);
      if (arrived != round * threads) ++wrong;
      team.barrier(member);
    }
  });
  EXPECT_EQ(wrong, 0);
}

// Members park after 50 us; a job handed out at any moment around that must still wake them.
TEST(Team, parked_members_wake) {
  Team team(2);
  std::atomic<int> ran{0};
  const auto jobs = scaled(600);
  for (int job = 0; job < jobs; ++job) {
    std::this_thread::sleep_for(std::chrono::microseconds(job % 2 == 0 ? 40 + job % 40 : 200));
    team.run([&](int) { ran.fetch_add(1, std::memory_order_relaxed); });
    ASSERT_EQ(ran, 2 * (job + 1)) << "job " << job;
  }
}

TEST(Team, ends_while_members_spin_and_while_they_are_parked) {
  for (int i = 0; i < 50; ++i) {
    Team team(2);
    if (i % 2 == 0) team.run([](int) {});
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Team, a_second_team_still_has_all_cpus) {
  // In a thread of its own, since a team pins its caller.
  std::thread([] {
    const Team first(2);
    Team second(2);
    std::vector<int> masks[2];
    second.run([&](int member) { masks[member] = cpus_of_caller(); });
    const std::vector<int>&caller = masks[0], &worker = masks[1];
    if (std::thread::hardware_concurrency() >= 2) {
      ASSERT_EQ(caller.size(), 1u);
      ASSERT_EQ(worker.size(), 1u);
      EXPECT_NE(caller[0], worker[0]);
    } else {
      EXPECT_EQ(caller, worker);
    }
  }).join();
}

}  // namespace
}  // namespace hearth
