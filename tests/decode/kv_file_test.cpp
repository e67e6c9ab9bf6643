// What is written is read, and every damage to it is told.
#include "decode/kv_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "decode/kv_file_bytes.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using test::KvFileBytes;

std::string outcome_of(const std::string& bytes, const std::vector<graph::KvGroup>& groups) {
  return test::outcome([&] { test::read_kv_file(bytes, groups); });
}

TEST(KvFile, round_trip_of_every_kind) {
  for (const graph::KvFormat format :
       {graph::KvFormat::f32, graph::KvFormat::bf16, graph::KvFormat::q8, graph::KvFormat::q4})
    for (const int64_t window : {0, 50, 100})
      for (const int64_t positions : {1, 64, 65, 200}) {
        const KvFileBytes file(format, window, positions);
        const KvFileReader reader = test::kv_reader(file.bytes, file.groups);
        EXPECT_EQ(reader.head().ids, file.head.ids);
        EXPECT_EQ(reader.head().fingerprint, "f");
        EXPECT_EQ(reader.head().space, "s");
        EXPECT_EQ(reader.head().created, 1700000000);
        size_t number = 0;
        for (size_t g = 0; g < file.groups.size(); ++g)
          for (int64_t i = first_page_seen(file.groups[g], positions); i < pages_of(positions); ++i) {
            std::vector<std::byte> page(static_cast<size_t>(graph::kv_page_bytes(file.groups[g])));
            reader.read_page(g, i, page);
            EXPECT_EQ(page, file.pages[number++]);
          }
        EXPECT_EQ(number, file.pages.size());
        EXPECT_EQ(kv_file_pages(file.groups, positions), static_cast<int64_t>(number));
      }
}

TEST(KvFile, a_cut_at_any_byte_is_told) {
  const KvFileBytes file(graph::KvFormat::q4, 50, 70);
  EXPECT_EQ(outcome_of(file.bytes, file.groups), "accepted");
  for (size_t n = 0; n < file.bytes.size(); n += n < 5000 ? 1 : 997)
    ASSERT_EQ(outcome_of(file.bytes.substr(0, n), file.groups).substr(0, 13), "corrupt_file:") << n;
  EXPECT_EQ(outcome_of(file.bytes + '\0', file.groups).substr(0, 13), "corrupt_file:");
}

// Whatever is turned, cut, doubled or put in the place of something else: an error, or what was written (where it was
// padding, or the date).
void check_damage(int64_t tries) {
  const KvFileBytes file(graph::KvFormat::q4, 50, 70), other(graph::KvFormat::q4, 50, 71);
  const std::vector<std::byte> want = test::read_kv_file(file.bytes, file.groups);
  Random random(3);
  int64_t told = 0;
  for (int64_t i = 0; i < tries; ++i) {
    std::string bytes = file.bytes;
    const size_t at = random.below(i % 2 ? 4096 : bytes.size()), n = 1 + random.below(64);
    switch (i % 16) {
      case 0: bytes.resize(at); break;
      case 1: bytes.insert(at, file.bytes.substr(random.below(bytes.size()), n)); break;
      case 2: bytes.replace(at, n, other.bytes.substr(at, n)); break;
      case 3: bytes.replace(at, n, bytes.substr(random.below(bytes.size()), n)); break;
      case 4: bytes.erase(at, n); break;
      default: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
    }
    try {
      ASSERT_EQ(test::read_kv_file(bytes, file.groups), want) << at;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::corrupt_file);
      ++told;
    }
  }
  EXPECT_GT(told, tries / 4);
}
// R-19: saved KV files: checksum and model hash checked, 1 M fuzz.
TEST(KvFile, damage_is_told_or_changes_nothing) { check_damage(4'000); }
TEST(KvFileFull, damage_is_told_or_changes_nothing) { check_damage(1'000'000); }

TEST(KvFile, says_what_is_wrong) {
  KvFileBytes file(graph::KvFormat::bf16, 0, 70);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string bytes = file.bytes;
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return outcome_of(bytes.replace(at, from.size(), to), file.groups);
  };
  EXPECT_EQ(with("HKV1", "HKV2"), "corrupt_file: k: it does not begin with HKV1");
  EXPECT_EQ(with(R"("positions": 70)", R"("positions": -1)"), "corrupt_file: k: it has -1 positions");
  EXPECT_EQ(with(R"("positions": 70)", R"("position_": 70)"), "corrupt_file: k: its header has no positions");
  EXPECT_EQ(with(R"("P": 64)", R"("P": 32)"), "corrupt_file: k: its pages have another number of positions");
  EXPECT_EQ(with(R"("bits": 16)", R"("bits": 32)"), "corrupt_file: k: its layers are others");
  EXPECT_EQ(with(R"("ids_checksum": ")", R"("ids_checksum": "x)").substr(0, 16), "corrupt_file: k:");
  std::string bytes = file.bytes;
  bytes[4] = 9;
  EXPECT_EQ(outcome_of(bytes, file.groups), "corrupt_file: k: version 9, this build reads 1");
  bytes = file.bytes;
  std::memset(bytes.data() + 8, 0xff, 4);
  EXPECT_EQ(outcome_of(bytes, file.groups), "corrupt_file: k: its header is longer than the file");
  bytes = file.bytes;
  bytes.back() = static_cast<char>(~bytes.back());
  EXPECT_EQ(outcome_of(bytes, file.groups), "corrupt_file: k: page 1 of group 1 is damaged");
}

}  // namespace
}  // namespace hearth::decode
