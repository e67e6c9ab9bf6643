#include "cpu/pack_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "cpu/random_weights.h"

namespace hearth::cpu {
namespace {

class PackCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ("pack_cache_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(dir_);
    std::mt19937 random(4);
    for (const Codec codec : {Codec::q4_1, Codec::q8_0, Codec::bf16})
      weights_.push_back(testing::random_weights(random, {.codec = codec}, 40, 64));
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  static std::string name(size_t i) { return "layers." + std::to_string(i) + ".w"; }

  std::filesystem::path write(double seconds = 5) {
    PackCache cache(dir_, "abc-1");
    for (size_t i = 0; i < weights_.size(); ++i) cache.add(name(i), Matrix::pack(weights_[i].view()), seconds);
    cache.save();
    return cache.path();
  }
  bool found(size_t i) {
    const PackCache cache(dir_, "abc-1");
    const std::optional<Matrix> m = cache.find(name(i), weights_[i].view());
    if (!m) return false;
    const Matrix want = Matrix::pack(weights_[i].view());
    EXPECT_EQ(m->bytes().size(), want.bytes().size());
    EXPECT_EQ(std::memcmp(m->bytes().data(), want.bytes().data(), want.bytes().size()), 0);
    return true;
  }

  std::filesystem::path dir_;
  std::vector<testing::OwnedTensor> weights_;
};

TEST_F(PackCacheTest, gives_back_what_was_packed) {
  EXPECT_FALSE(found(0));
  write();
  for (size_t i = 0; i < weights_.size(); ++i) EXPECT_TRUE(found(i));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);  // no temporary stays
}

TEST_F(PackCacheTest, keeps_found_matrices_when_one_is_added) {
  write();
  std::mt19937 random(9);
  const testing::OwnedTensor extra = testing::random_weights(random, {.codec = Codec::q4_0}, 32, 64);
  {
    PackCache cache(dir_, "abc-1");
    ASSERT_TRUE(cache.find(name(0), weights_[0].view()));
    cache.add("extra", Matrix::pack(extra.view()), 2);
    cache.save();
  }
  EXPECT_TRUE(found(0));
  const PackCache cache(dir_, "abc-1");
  EXPECT_TRUE(cache.find("extra", extra.view()));
}

TEST_F(PackCacheTest, writes_nothing_for_quick_packing) {
  const auto path = write(0.1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(PackCacheTest, refuses_other_extents_formats_and_keys) {
  write();
  const PackCache cache(dir_, "abc-1"), other(dir_, "abc-2");
  PackedTensor w = weights_[0].view();
  EXPECT_TRUE(cache.find(name(0), w));
  EXPECT_FALSE(other.find(name(0), w));
  EXPECT_FALSE(cache.find(name(1), w));
  w.N = 8;
  EXPECT_FALSE(cache.find(name(0), w));
  for (const char* key : {"", "../x", "a/b", "a b"}) EXPECT_THROW(PackCache(dir_, key), Error) << key;
}

TEST_F(PackCacheTest, a_damaged_file_is_never_used) {
  const auto path = write();
  log::global().configure({.level = log::Level::off});  // it would tell of every damage
  std::string good;
  {
    std::ifstream in(path, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::mt19937 random(3);
  int missed = 0;
  for (int i = 0; i < 120; ++i) {
    std::string bad = good;
    if (i % 3 == 0) bad.resize(random() % good.size());
    else bad[i % 3 == 1 ? random() % 900 : random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(path, std::ios::binary).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    for (size_t w = 0; w < weights_.size(); ++w) missed += !found(w);  // found() compares the bytes
  }
  log::global().configure({});
  EXPECT_GT(missed, 60);
}

}  // namespace
}  // namespace hearth::cpu
