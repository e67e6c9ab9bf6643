#include "base/folder_use.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "support/temp_dir.h"

namespace hearth::io {
namespace {

TEST(FolderUse, temporaries_are_known_by_their_names) {
  EXPECT_TRUE(is_temporary(".a.packed.12-0.tmp", ".packed"));
  for (const char* name :
       {"a.packed.12-0.tmp", ".a.packed", ".a.packed.tmpx", ".notes.tmp", ".a.hkv.12-0.tmp", ".packed"})
    EXPECT_FALSE(is_temporary(name, ".packed")) << name;
}

TEST(FolderUse, is_cleaned_by_the_first_alone) {
  const test::TempDir dir;
  int cleaned = 0;
  const auto clean = [&] { ++cleaned; };
  {
    FolderUse first(dir.path(), clean);
    EXPECT_EQ(cleaned, 1);
    const FolderUse second(dir.path(), clean), moved(std::move(first));
    EXPECT_TRUE(second.is_held() && moved.is_held());
    EXPECT_FALSE(if_unused(dir.path(), clean));
    EXPECT_EQ(cleaned, 1);
  }
  EXPECT_TRUE(if_unused(dir.path(), clean));
  EXPECT_EQ(cleaned, 2);
}

TEST(FolderUse, ends_with_a_process_that_is_killed) {
  const test::TempDir dir;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FolderUse use(dir.path(), [] {});
    if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char told = 0;
  ASSERT_EQ(::read(pipe[0], &told, 1), 1);
  EXPECT_FALSE(if_unused(dir.path(), [] {}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(if_unused(dir.path(), [] {}));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(FolderUse, a_failed_cleaning_passes_and_holds_nothing) {
  const test::TempDir dir;
  const auto fails = [] { throw std::runtime_error("full"); };
  EXPECT_THROW(FolderUse(dir.path(), fails), std::runtime_error);
  EXPECT_THROW(if_unused(dir.path(), fails), std::runtime_error);
  EXPECT_TRUE(if_unused(dir.path(), [] {}));
}

TEST(FolderUse, an_absent_folder_is_used_by_nobody) {
  const test::TempDir dir;
  bool cleaned = false;
  const FolderUse use(dir.path() / "absent", [&] { cleaned = true; });
  EXPECT_FALSE(use.is_held());
  EXPECT_FALSE(if_unused(dir.path() / "absent", [&] { cleaned = true; }));
  EXPECT_FALSE(cleaned);
}

}  // namespace
}  // namespace hearth::io
