#include "cpu/pack_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/faulty_fs.h"
#include "base/log.h"
#include "cpu/pack_folder.h"
#include "cpu/random_weights.h"
#include "support/outcome.h"
#include "support/scale.h"
#include "support/temp_dir.h"

namespace hearth::cpu {
namespace {
namespace fs = std::filesystem;

class PackCacheTest : public ::testing::Test {
 protected:
  PackCacheTest() {
    std::mt19937 random(4);
    for (const Codec codec : {Codec::q4_1, Codec::q8_0, Codec::bf16})
      weights_.push_back(testing::random_weights(random, {.codec = codec}, 40, 64));
    log::global().configure({.fd = -1});
    if (const auto lines = log::global().recent(1); !lines.empty()) before_ = lines.back().sequence;
  }
  ~PackCacheTest() override { log::global().configure({}); }

  // The newest lines of this test's log.
  std::string said() const {
    std::string text;
    for (const log::Line& line : log::global().recent(100, before_)) text += line.message + "\n";
    return text;
  }

  static std::string name(size_t i) { return "layers." + std::to_string(i) + ".w"; }
  PackCacheOptions options(std::string key = "abc-1") const {
    return {.dir = dir_.path() / "packed", .key = std::move(key), .source = "model.gguf", .bytes_min = 1};
  }
  fs::path folder() const { return dir_.path() / "packed"; }

  fs::path write(PackCacheOptions o) const {
    PackCache cache(std::move(o));
    for (size_t i = 0; i < weights_.size(); ++i) cache.add(name(i), Matrix::pack(weights_[i].view()), 0);
    cache.save();
    return cache.path();
  }
  fs::path write() const { return write(options()); }

  // Whether it is there; what is there must be right.
  bool found(size_t i, Team* team = nullptr) const {
    PackCache cache(options());
    const auto kept = cache.find(name(i), weights_[i].view(), team);
    if (!kept) return false;
    const Matrix want = Matrix::pack(weights_[i].view());
    EXPECT_EQ(kept->matrix.bytes().size(), want.bytes().size());
    EXPECT_EQ(std::memcmp(kept->matrix.bytes().data(), want.bytes().data(), want.bytes().size()), 0);
    return true;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const io::Entry& entry : io::real_fs().list(folder())) names.push_back(entry.name);
    return names;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  test::TempDir dir_;
  std::vector<testing::OwnedTensor> weights_;
  uint64_t before_ = 0;
};

TEST_F(PackCacheTest, gives_back_what_was_packed) {
  EXPECT_FALSE(found(0));
  write();
  Team team(2);
  for (size_t i = 0; i < weights_.size(); ++i) {
    EXPECT_TRUE(found(i));
    EXPECT_TRUE(found(i, &team));
  }
  EXPECT_EQ(files(), std::vector<std::string>{"abc-1.packed"});  // no temporary stays
  EXPECT_EQ(said(), "");
}

// Matrices larger than a chunk, and several in one.
TEST_F(PackCacheTest, chunks_and_matrices_need_not_meet) {
  std::mt19937 random(7);
  std::vector<testing::OwnedTensor> many;
  for (const int64_t N : {3000, 16, 5000, 32})
    many.push_back(testing::random_weights(random, {.codec = Codec::q8_0}, N, 2048));
  {
    PackCache cache(options());
    for (size_t i = 0; i < many.size(); ++i) cache.add(name(i), Matrix::pack(many[i].view()), 0);
    cache.save();
  }
  Team team(3);
  PackCache cache(options());
  for (size_t i = many.size(); i-- > 0;) {
    const auto kept = cache.find(name(i), many[i].view(), &team);
    ASSERT_TRUE(kept);
    const Matrix want = Matrix::pack(many[i].view());
    EXPECT_EQ(std::memcmp(kept->matrix.bytes().data(), want.bytes().data(), want.bytes().size()), 0);
  }
}

TEST_F(PackCacheTest, keeps_what_was_found_when_one_is_added) {
  write();
  std::mt19937 random(9);
  const testing::OwnedTensor extra = testing::random_weights(random, {.codec = Codec::q4_0}, 32, 64);
  {
    PackCache cache(options());
    ASSERT_TRUE(cache.find(name(0), weights_[0].view()));
    cache.add("extra", Matrix::pack(extra.view()), 3);
    cache.save();
  }
  EXPECT_TRUE(found(0));
  PackCache cache(options());
  const auto kept = cache.find("extra", extra.view());
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->nonfinite, 3);
}

TEST_F(PackCacheTest, remembers_what_was_counted_in_tables) {
  {
    PackCache cache(options());
    EXPECT_FALSE(cache.checked("table", weights_[1].view()));
    cache.add_checked("table", weights_[1].view(), 17);
    cache.add(name(0), Matrix::pack(weights_[0].view()), 0);
    cache.save();
  }
  for (int round = 0; round < 2; ++round) {
    PackCache cache(options());
    EXPECT_EQ(cache.checked("table", weights_[1].view()), 17);
    EXPECT_FALSE(cache.checked("table", weights_[0].view()));  // another format
    cache.add("again", Matrix::pack(weights_[0].view()), 0);   // the file is written anew, with the count
    cache.save();
  }
}

TEST_F(PackCacheTest, writes_nothing_for_little_packing) {
  PackCacheOptions more = options();
  more.bytes_min = 1 << 30;
  write(more);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(PackCacheTest, refuses_other_extents_formats_and_keys) {
  const fs::path path = write();
  PackCache cache(options()), other(options("abc-2"));
  PackedTensor w = weights_[0].view();
  EXPECT_TRUE(cache.find(name(0), w));
  EXPECT_FALSE(other.find(name(0), w));
  EXPECT_FALSE(cache.find(name(1), w));
  w.N = 8;
  EXPECT_FALSE(cache.find(name(0), w));
  for (const char* key : {"", "../x", "a/b", "a b"}) EXPECT_THROW(PackCache(options(key)), Error) << key;

  fs::copy_file(path, folder() / "abc-3.packed");
  PackCache renamed(options("abc-3"));
  EXPECT_FALSE(renamed.find(name(0), weights_[0].view()));
  EXPECT_NE(said().find("abc-3.packed: it holds the weights of abc-1"), std::string::npos) << said();
}

// Cut at every byte of its end and in many other places: never used in part.
TEST_F(PackCacheTest, a_cut_file_is_never_used) {
  const fs::path path = write();
  const std::string good = read(path);
  std::mt19937 random(3);
  for (int i = 0; i < test::scaled(300); ++i) {
    const size_t size = i < 200 ? good.size() - 1 - static_cast<size_t>(i) : random() % good.size();
    put(path, good.substr(0, size));
    for (size_t w = 0; w < weights_.size(); ++w) EXPECT_FALSE(found(w)) << size;
  }
  put(path, good + "x");
  EXPECT_FALSE(found(0));
  put(path, std::string(good.size(), '\0'));  // as a file system may leave it behind a power loss
  EXPECT_FALSE(found(0));
  EXPECT_NE(said().find("cut, or not all written"), std::string::npos) << said();
}

TEST_F(PackCacheTest, a_flipped_bit_is_never_used) {
  const fs::path path = write();
  const std::string good = read(path);
  std::mt19937 random(3);
  int used = 0;
  const int rounds = static_cast<int>(test::scaled(300));
  for (int i = 0; i < rounds; ++i) {
    std::string bad = good;
    // A third in the head and the first matrix, a third in index and foot, a third anywhere.
    const size_t at = i % 3 == 0   ? random() % 5000
                      : i % 3 == 1 ? bad.size() - 1 - random() % 1200
                                   : random() % bad.size();
    bad[at] ^= static_cast<char>(1 << random() % 8);
    put(path, bad);
    for (size_t w = 0; w < weights_.size(); ++w) used += found(w);  // found() compares the bytes
  }
  // One chunk holds them all, so that only flips in the three zeros of the foot leave anything in use.
  EXPECT_LT(used, 3 * rounds / 20);
  EXPECT_NE(said().find("is damaged: what is not whole is packed anew"), std::string::npos);
}

// What a damaged file lacks may be little: the file is written anew all the same, and once.
TEST_F(PackCacheTest, a_damaged_file_is_mended) {
  const fs::path path = write();
  const std::string good = read(path);
  for (const size_t at : {size_t{5000}, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 1;
    put(path, bad);
    PackCacheOptions more = options();
    more.bytes_min = 1 << 30;
    PackCache cache(more);
    for (size_t i = 0; i < weights_.size(); ++i)
      if (!cache.find(name(i), weights_[i].view())) cache.add(name(i), Matrix::pack(weights_[i].view()), 0);
    cache.save();
    EXPECT_EQ(read(path), good) << at;
  }
}

TEST_F(PackCacheTest, two_writers_and_a_reader_at_once) {
  std::atomic<bool> stop = false;
  const auto writer = [&] {
    for (int i = 0; i < 20; ++i) write();
  };
  std::thread reader([&] {
    while (!stop) found(1);
  });
  std::thread other(writer);
  writer();
  other.join();
  stop = true;
  reader.join();
  for (size_t i = 0; i < weights_.size(); ++i) EXPECT_TRUE(found(i));
  EXPECT_EQ(files(), std::vector<std::string>{"abc-1.packed"});
}

// A process that is killed while it writes leaves a temporary. The next writer removes it, unless somebody else writes
// at that moment: then nobody can tell whose it is.
TEST_F(PackCacheTest, a_killed_writer_leaves_nothing_for_long) {
  fs::create_directories(folder());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const io::FolderUse use = use_packed(io::real_fs(), folder());
    put(folder() / fmt::format(".abc-1.packed.{}-0.tmp", ::getpid()), "half");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::string left = fmt::format(".abc-1.packed.{}-0.tmp", child), foreign = ".notes.tmp";
  put(folder() / foreign, "mine");
  EXPECT_EQ(count_leftovers(io::real_fs(), folder()), 1);
  EXPECT_FALSE(found(0));
  {
    const io::FolderUse other(folder(), [] {});
    EXPECT_EQ(count_leftovers(io::real_fs(), folder()), 0);
    write();
    EXPECT_EQ(files(), (std::vector<std::string>{left, foreign, "abc-1.packed"}));
  }
  write(options("abc-2"));
  EXPECT_EQ(files(), (std::vector<std::string>{foreign, "abc-1.packed", "abc-2.packed"}));
  EXPECT_TRUE(found(0));
  EXPECT_EQ(count_leftovers(io::real_fs(), dir_.path() / "absent"), 0);
}

TEST_F(PackCacheTest, the_folder_keeps_to_its_limit_and_the_oldest_go_first) {
  const auto size = static_cast<int64_t>(fs::file_size(write(options("a"))));
  const auto limited = [&](const char* key) {
    PackCacheOptions o = options(key);
    o.bytes_max = 3 * size + 2'000'000;  // an index is counted with a MB
    return o;
  };
  const auto used_at = [&](const char* key, int seconds) {
    fs::last_write_time(folder() / (std::string(key) + ".packed"),
                        fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  put(folder() / "other.txt", std::string(100, 'x'));
  write(limited("b"));
  write(limited("c"));
  used_at("a", 300), used_at("b", 200), used_at("c", 100);
  {
    PackCache cache(limited("a"));  // use makes it the youngest
    ASSERT_TRUE(cache.find(name(0), weights_[0].view()));
  }
  std::vector<std::string> want = {"a.packed", "c.packed", "d.packed", "other.txt"};
  // The three of them take all the room there is.
  PackCacheOptions tight = limited("d");
  tight.bytes_max = 3 * size + (1 << 20);
  write(tight);
  EXPECT_EQ(files(), want);

  PackCacheOptions tiny = options("e");
  tiny.bytes_max = 1000;
  write(tiny);
  EXPECT_EQ(files(), want);
  EXPECT_NE(said().find("--pack-cache allows 1000 for all models"), std::string::npos) << said();
}

TEST_F(PackCacheTest, a_folder_that_cannot_be_written_costs_a_line) {
  put(dir_.path() / "packed", "a file in the way");
  write();
  EXPECT_NE(said().find("packed weights are not kept, so the next start packs again: "), std::string::npos) << said();
  EXPECT_FALSE(found(0));
}

// The n-th call fails, for every n, as on a full disk: the old file stays or the new one is whole; no temporary stays.
TEST_F(PackCacheTest, a_full_disk_leaves_the_old_file_or_nothing) {
  for (const bool before : {false, true})
    for (int nth = 1;; ++nth) {
      fs::remove_all(folder());
      if (before) write();
      test::FaultyFs faulty(io::real_fs(), nth, "No space left on device");
      PackCacheOptions o = options();
      o.fs = &faulty;
      write(o);
      const bool failed = faulty.calls() >= nth;
      if (fs::exists(folder())) {
        for (const std::string& file : files()) EXPECT_EQ(file, "abc-1.packed") << nth;
      }
      if (before || !failed) {
        EXPECT_TRUE(found(0)) << nth;
      }
      if (!failed) break;
      ASSERT_LT(nth, 1000);
    }
  EXPECT_NE(said().find("No space left on device"), std::string::npos) << said();
}

}  // namespace
}  // namespace hearth::cpu
