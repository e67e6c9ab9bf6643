// A log that begins anew above its bound, below, at and above it.
#include "cli/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/listen.h"
#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::cli {
namespace {

void write(int fd, const std::string& text) {
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(LogFile, begins_anew_above_its_bound) {
  EXPECT_EQ(kLogFileBytesMax, int64_t{64} << 20);
  const test::TempDir dir;
  const std::filesystem::path file = dir.path() / "logs" / "hearth.log", older = file.string() + ".1";
  const net::Descriptor log(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  log_to(file, log.get());
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  write(log.get(), std::string(99, 'a'));
  EXPECT_FALSE(rotate_log(file, log.get(), 100));
  write(log.get(), "b");
  EXPECT_FALSE(rotate_log(file, log.get(), 100));
  write(log.get(), "c");
  EXPECT_TRUE(rotate_log(file, log.get(), 100));
  EXPECT_EQ(test::read_bytes(older), std::string(99, 'a') + "bc");
  EXPECT_EQ(test::read_bytes(file), "");
  write(log.get(), "after");
  EXPECT_EQ(test::read_bytes(file), "after") << "at the begin, not behind a hole";
  EXPECT_TRUE(rotate_log(file, log.get(), 4));
  EXPECT_EQ(test::read_bytes(older), "after") << "one older part is kept, the newest";
}

TEST(LogFile, goes_on_in_a_file_that_is_there) {
  const test::TempDir dir;
  const std::filesystem::path file = dir.write("log", "first\n");
  const net::Descriptor log(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  log_to(file, log.get());
  write(log.get(), "second\n");
  EXPECT_EQ(test::read_bytes(file), "first\nsecond\n");
}

TEST(LogFile, refuses_what_is_no_file_of_its_own) {
  const test::TempDir dir;
  const net::Descriptor log(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const std::filesystem::path link = dir.path() / "link", pipe = dir.path() / "pipe";
  std::filesystem::create_symlink(dir.write("target", ""), link);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(test::outcome([&] { log_to(link, log.get()); }).starts_with("io: " + link.string()));
  EXPECT_TRUE(test::outcome([&] { log_to(pipe, log.get()); }).starts_with("io: " + pipe.string()));
  EXPECT_TRUE(test::outcome([&] { log_to(dir.path(), log.get()); }).starts_with("io: " + dir.path().string()));
}

}  // namespace
}  // namespace hearth::cli
