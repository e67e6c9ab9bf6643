#include "base/fs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/faulty_fs.h"
#include "support/temp_dir.h"

namespace hearth::io {
namespace {

using test::FaultyFs;
using test::TempDir;

std::string read(const Path& path) { return real_fs().read_file(path, 1 << 20); }

template <class Call>
Error refusal(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::busy, "accepted");
}

TEST(Fs, writes_and_replaces_whole_files) {
  const TempDir dir;
  const Path path = dir.path() / "a.json";
  write_file_atomic(real_fs(), path, "one");
  EXPECT_EQ(read(path), "one");
  write_file_atomic(real_fs(), path, std::string(300'000, 'x'), 0600);
  EXPECT_EQ(read(path).size(), 300'000u);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(real_fs().list(dir.path()).size(), 1u);  // no temporary is left
}

TEST(Fs, what_is_no_file_is_never_replaced) {
  const TempDir dir;
  const Path pipe = dir.path() / "pipe", link = dir.path() / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", link);
  std::filesystem::create_directory(dir.path() / "folder");
  for (const Path& path : {pipe, link, dir.path() / "folder"}) {
    const Error e = refusal([&] { write_file_atomic(real_fs(), path, "x"); });
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument) << e.what();
    EXPECT_TRUE(std::string_view(e.what()).starts_with(path.string() + ": ")) << e.what();
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(real_fs().list(dir.path()).size(), 3u);  // no temporary is left
}

TEST(Fs, names_may_be_as_long_as_the_file_system_holds) {
  const TempDir dir;
  std::string accents;
  while (accents.size() < 254) accents += "\u00e9";
  for (const std::string& name : {std::string(255, 'n'), accents, "x" + accents, std::string(250, '\x80')}) {
    write_file_atomic(real_fs(), dir.path() / name, "1");
    write_file_atomic(real_fs(), dir.path() / name, "2");
    EXPECT_EQ(read(dir.path() / name), "2");
  }
  EXPECT_EQ(real_fs().list(dir.path()).size(), 4u);
  const Path longer = dir.path() / std::string(256, 'n');
  const Error e = refusal([&] { write_file_atomic(real_fs(), longer, "x"); });
  EXPECT_EQ(e.kind(), ErrorKind::io);
  EXPECT_EQ(e.what(), longer.string() + ": stat: File name too long");
}

TEST(Fs, an_error_names_the_file_and_not_the_temporary) {
  const TempDir dir;
  const Path path = dir.path() / "absent" / "a.json";
  const Error e = refusal([&] { write_file_atomic(real_fs(), path, "x"); });
  EXPECT_EQ(e.kind(), ErrorKind::not_found);
  EXPECT_TRUE(std::string_view(e.what()).starts_with(path.string() + ": open: ")) << e.what();
}

// Every step of a write fails once, alone and with all later ones: the old version stays whole, or, once the rename
// has happened, the new one is there whole. Never a mixture.
TEST(Fs, a_failing_disk_leaves_the_old_version_or_the_new_one) {
  for (const char* reason : {"No space left on device", "Input/output error"})
    for (const bool for_good : {false, true}) {
      int failures = 0;
      for (int nth = 1;; ++nth) {
        const TempDir dir;
        const Path path = dir.path() / "state";
        write_file_atomic(real_fs(), path, "old");
        FaultyFs faulty(real_fs(), nth, reason);
        if (for_good) faulty.fail_from_then_on();
        std::string failure;
        try {
          write_file_atomic(faulty, path, "new version");
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::io);
          failure = e.what();
          ++failures;
        }
        const bool renamed = nth >= 6;  // after a look at the name, open, write, fsync, rename
        EXPECT_EQ(read(path), renamed ? "new version" : "old") << nth << ": " << failure;
        if (!for_good) {
          EXPECT_EQ(real_fs().list(dir.path()).size(), 1u) << nth << ": " << failure;
        }
        if (failure.empty()) break;
        EXPECT_NE(failure.find(reason), std::string::npos);
      }
      EXPECT_EQ(failures, 6);  // the look, open, write, fsync, rename, fsync of the folder
    }
}

TEST(Fs, without_commit_nothing_appears) {
  const TempDir dir;
  {
    AtomicFile file(real_fs(), dir.path() / "x");
    file.write("half");
  }
  EXPECT_TRUE(real_fs().list(dir.path()).empty());
}

TEST(Fs, a_failed_file_is_dead) {
  const TempDir dir;
  FaultyFs faulty(real_fs(), 3, "Input/output error");
  AtomicFile file(faulty, dir.path() / "x");
  EXPECT_EQ(refusal([&] { file.write("abc"); }).kind(), ErrorKind::io);
  EXPECT_DEATH(file.commit(), "is committed or has failed");
}

TEST(Fs, two_writers_of_one_name_do_not_meet) {
  const TempDir dir;
  AtomicFile a(real_fs(), dir.path() / "x"), b(real_fs(), dir.path() / "x");
  a.write("from a");
  b.write("from b");
  b.commit();
  a.commit();
  EXPECT_EQ(read(dir.path() / "x"), "from a");
}

TEST(Fs, errors_name_path_and_reason) {
  const TempDir dir;
  const Path path = dir.path() / "x";
  const std::string name = path.string();
  EXPECT_EQ(refusal([&] { read(path); }).kind(), ErrorKind::not_found);
  EXPECT_EQ(refusal([&] { read(path); }).what(), name + ": open: No such file or directory");
  EXPECT_EQ(refusal([&] { read(dir.path()); }).what(), dir.path().string() + ": not a regular file");
  EXPECT_EQ(refusal([&] { real_fs().list(path); }).kind(), ErrorKind::not_found);
  EXPECT_EQ(refusal([&] { write_file_atomic(real_fs(), path / "y", ""); }).kind(), ErrorKind::not_found);
  write_file_atomic(real_fs(), path, "1234");
  EXPECT_EQ(refusal([&] { real_fs().read_file(path, 3); }).what(), name + ": 4 bytes, the limit is 3");
  EXPECT_EQ(real_fs().read_file(path, 4), "1234");
  EXPECT_EQ(refusal([&] { real_fs().create(path, 0644); }).what(), name + ": open: File exists");
  EXPECT_EQ(refusal([&] { real_fs().make_dirs(path); }).what(), name + ": mkdir: File exists");
}

TEST(Fs, folders_and_removal) {
  const TempDir dir;
  real_fs().make_dirs(dir.path() / "a" / "b" / "c");
  real_fs().make_dirs(dir.path() / "a" / "b" / "c");
  write_file_atomic(real_fs(), dir.path() / "a" / "z", "");
  const auto entries = real_fs().list(dir.path() / "a");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_TRUE(entries[0].is_dir);
  EXPECT_EQ(entries[1].name, "z");
  EXPECT_FALSE(entries[1].is_dir);
  EXPECT_TRUE(real_fs().exists(dir.path() / "a" / "z"));
  real_fs().remove(dir.path() / "a" / "z");
  real_fs().remove(dir.path() / "a" / "z");
  EXPECT_FALSE(real_fs().exists(dir.path() / "a" / "z"));
  EXPECT_FALSE(real_fs().exists(dir.path() / "no" / "such"));
}

}  // namespace
}  // namespace hearth::io
