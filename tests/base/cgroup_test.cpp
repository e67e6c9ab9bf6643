#include "base/cgroup.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace hearth {
namespace {

std::optional<int64_t> limit_of(const test::TempDir& dir) {
  return cgroup_memory_limit(dir.path() / "proc", dir.path() / "sys");
}

TEST(Cgroup, the_least_limit_on_the_way_to_the_root_holds) {
  test::TempDir dir;
  dir.write("proc/self/cgroup", "0::/user/app\n");
  EXPECT_EQ(limit_of(dir), std::nullopt);
  dir.write("sys/fs/cgroup/user/app/memory.max", "max\n");
  EXPECT_EQ(limit_of(dir), std::nullopt);
  dir.write("sys/fs/cgroup/user/memory.max", "8000000000\n");
  EXPECT_EQ(limit_of(dir), 8'000'000'000);
  dir.write("sys/fs/cgroup/memory.max", "9000000000\n");
  EXPECT_EQ(limit_of(dir), 8'000'000'000);
  dir.write("sys/fs/cgroup/user/app/memory.max", "1000000\n");
  EXPECT_EQ(limit_of(dir), 1'000'000);
}

TEST(Cgroup, version_1_writes_no_limit_as_a_large_number) {
  test::TempDir dir;
  dir.write("proc/self/cgroup", "5:cpu,cpuacct:/box\n4:memory:/box\n");
  dir.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit_of(dir), std::nullopt);
  dir.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "500\n");
  EXPECT_EQ(limit_of(dir), 500);
}

}  // namespace
}  // namespace hearth
