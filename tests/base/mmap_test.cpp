#include "base/mmap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include <fstream>

#include "base/error.h"
#include "base/faulty_fs.h"
#include "support/temp_dir.h"

namespace hearth {
namespace {

std::filesystem::path file_of(const test::TempDir& dir, const std::string& name, size_t bytes) {
  const std::filesystem::path path = dir.path() / name;
  std::ofstream(path) << std::string(bytes, 'x');
  return path;
}

int sum(std::span<const std::byte> bytes) {
  int total = 0;
  for (const std::byte b : bytes) total += static_cast<int>(b);
  return total;
}

// a file that shrinks under its reader is a sentence and exit code 1, no bare signal.
TEST(MappedFileDeathTest, a_file_that_shrinks_is_named) {
  const test::TempDir dir;
  const std::filesystem::path path = file_of(dir, "shrinks", 1 << 20);
  const auto read_shrunk = [&] {
    MappedFile::report_losses();
    const MappedFile other = MappedFile::open(file_of(dir, "other", 1 << 20));
    MappedFile moved;
    moved = MappedFile::open(path);
    std::filesystem::resize_file(path, 4096);
    std::exit(sum(moved.bytes()) + sum(other.bytes()) > 0 ? 0 : 2);
  };
  EXPECT_EXIT(read_shrunk(), testing::ExitedWithCode(1), "^hearth: .*/shrinks: the file shrank or cannot be read");
}

// Another file's SIGBUS, that no MappedFile stands for, is still a signal.
TEST(MappedFileDeathTest, a_closed_map_is_not_named) {
  const test::TempDir dir;
  const auto raise_bus = [&] {
    MappedFile::report_losses();
    {
      const MappedFile closed = MappedFile::open(file_of(dir, "closed", 4096));
    }
    std::raise(SIGBUS);  // its address is none of a map
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_bus(), testing::KilledBySignal(SIGBUS), "^$");
}

// Sanitizers themselves need the address space that this test takes away.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MappedFileDeathTest, no_address_space_is_a_refusal) {
  const test::TempDir dir;
  const std::filesystem::path path = file_of(dir, "sparse", 0);
  std::filesystem::resize_file(path, int64_t{1} << 40);
  const auto open_without_room = [&] {
    const rlimit limit{size_t{1} << 32, size_t{1} << 32};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
    try {
      MappedFile::open(path);
    } catch (const Error& e) {
      std::exit(e.kind() == ErrorKind::out_of_memory ? 4 : 1);
    }
    std::exit(0);
  };
  EXPECT_EXIT(open_without_room(), testing::ExitedWithCode(4), "");
}
#endif

}  // namespace
}  // namespace hearth
