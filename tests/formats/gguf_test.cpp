#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/temp_dir.h"
#include "formats/builders.h"

namespace hearth::formats {
namespace {

using test::GgufBytes;
using test::outcome;

TEST(Gguf, metadata_is_typed) {
  const GgufBytes bytes = test::sample_gguf();
  const GgufFile file = GgufFile::parse(test::as_bytes(bytes.text), "f");
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.values().size(), 10u);
  EXPECT_EQ(file.string("general.architecture"), "llama");
  EXPECT_EQ(file.integer("general.alignment"), 32);
  EXPECT_EQ(file.number("a.eps"), static_cast<double>(1e-5f));
  EXPECT_EQ(file.boolean("a.flag"), true);
  EXPECT_EQ(file.integer("a.big"), int64_t{1} << 40);
  EXPECT_EQ(file.integer("a.small"), -7);
  EXPECT_EQ(file.number("a.small"), -7.0);
  EXPECT_EQ(file.number("a.wide"), 0.125);
  const auto tokens = file.strings("a.tokens");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->size(), 3u);
  const std::string_view want[] = {"<s>", "", "the"};
  EXPECT_TRUE(std::equal(tokens->begin(), tokens->end(), std::begin(want), std::end(want)));
  const auto scores = file.array("a.scores"), types = file.array("a.types");
  EXPECT_TRUE(scores->holds_numbers() && !scores->holds_integers() && types->holds_integers());
  EXPECT_EQ(scores->number(1), -2.0);
  EXPECT_EQ(types->integer(2), -3);

  EXPECT_FALSE(file.find("absent"));
  EXPECT_FALSE(file.integer("absent"));
  EXPECT_FALSE(file.strings("absent"));
  EXPECT_EQ(outcome([&] { file.integer("a.eps"); }), "corrupt_file: f: a.eps: expected an integer, found a f32");
  EXPECT_EQ(outcome([&] { file.string("a.tokens"); }),
            "corrupt_file: f: a.tokens: expected a string, found an array of string");
  EXPECT_EQ(outcome([&] { file.strings("a.scores"); }),
            "corrupt_file: f: a.scores: expected an array of strings, found an array of f32");
  EXPECT_EQ(outcome([&] { file.boolean("a.small"); }), "corrupt_file: f: a.small: expected a boolean, found a i16");
}

TEST(Gguf, tensors_are_views_of_the_file) {
  const GgufBytes bytes = test::sample_gguf();
  GgufFile opened = GgufFile::parse(test::as_bytes(bytes.text), "f");
  const GgufFile file = std::move(opened);
  ASSERT_EQ(file.tensors().size(), 4u);
  const GgufTensor* q4 = file.find_tensor("q4");
  ASSERT_TRUE(q4);
  EXPECT_EQ(q4->format.codec, Codec::q4_1);
  EXPECT_EQ(q4->K(), 64);
  EXPECT_EQ(q4->N(), 3);
  EXPECT_EQ(q4->data.size(), 120u);
  const GgufTensor* half = file.find_tensor("half");
  EXPECT_EQ(half->shape(), (std::vector<int64_t>{2, 2, 4}));
  EXPECT_EQ(half->N(), 4);
  EXPECT_EQ(half->data.data(), q4->data.data() + 128);
  EXPECT_FALSE(file.find_tensor("q5"));
  for (const GgufTensor& t : file.tensors()) {
    validate(t.packed(), t.name);
    std::vector<float> row(static_cast<size_t>(t.K()));
    decode_row(t.packed(), t.N() - 1, row);
  }
}

TEST(Gguf, version_2_reads_the_same) {
  GgufBytes bytes(0, 1, 2);
  bytes.key("a", 8).string("x");
  EXPECT_EQ(GgufFile::parse(test::as_bytes(bytes.text), "f").string("a"), "x");
}

TEST(Gguf, u64_beyond_2_63_is_no_integer) {
  GgufBytes bytes(0, 1);
  bytes.scalar<uint64_t>("a", 10, UINT64_MAX);
  const GgufFile file = GgufFile::parse(test::as_bytes(bytes.text), "f");
  EXPECT_EQ(outcome([&] { file.integer("a"); }), "corrupt_file: f: a: 18446744073709551615 exceeds 2^63 - 1");
  EXPECT_EQ(file.number("a"), 18446744073709551615.0);
}

// A limit holds at limit - 1 and limit, and refuses limit + 1.
TEST(Gguf, limits) {
  const auto parse = [](const GgufBytes& bytes, const GgufLimits& limits) {
    return outcome([&] { GgufFile::parse(test::as_bytes(bytes.text), "f", limits); });
  };
  for (const uint64_t n : {3, 4, 5}) {
    const auto allowed = [&](const std::string& refusal) { return n <= 4 ? "accepted" : refusal; };
    GgufBytes keys(0, n), tensors(n, 0), text(0, 1), array(0, 1), strings(0, 1);
    for (uint64_t i = 0; i < n; ++i) {
      keys.scalar<uint8_t>("k" + std::to_string(i), 0, 1);
      tensors.tensor("t" + std::to_string(i), {8}, 0, 32 * i);
    }
    tensors.data(32 * n);
    text.key("a", 8).string(std::string(n, 'x'));
    array.array("a", 0, n);
    strings.array("a", 8, n);
    for (uint64_t i = 0; i < n; ++i) array.number<uint8_t>(1), strings.string("");
    EXPECT_EQ(parse(keys, {.keys_max = 4}), allowed("corrupt_file: f: 5 keys, the limit is 4"));
    EXPECT_EQ(parse(tensors, {.tensors_max = 4}), allowed("corrupt_file: f: 5 tensors, the limit is 4"));
    EXPECT_EQ(parse(text, {.string_bytes_max = 4}),
              allowed("corrupt_file: f: a at byte 37 has 5 bytes, the limit is 4"));
    EXPECT_EQ(parse(array, {.array_max = 4}), allowed("corrupt_file: f: a has 5 elements, the limit is 4"));
    EXPECT_EQ(parse(strings, {.array_max = 4}), allowed("corrupt_file: f: a has 5 elements, the limit is 4"));
  }
  const GgufLimits defaults;
  EXPECT_EQ(defaults.keys_max, 65'536u);
  EXPECT_EQ(defaults.tensors_max, 1'000'000u);
  EXPECT_EQ(defaults.string_bytes_max, 67'108'864u);
  EXPECT_EQ(defaults.array_max, 16'000'000u);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

GgufBytes part(int no, int count, int total, const std::string& tensor) {
  GgufBytes bytes(1, 3);
  bytes.scalar<uint16_t>("split.no", 2, static_cast<uint16_t>(no));
  bytes.scalar<uint16_t>("split.count", 2, static_cast<uint16_t>(count));
  bytes.scalar<int32_t>("split.tensors.count", 5, total);
  bytes.tensor(tensor, {8}, 0, 0).data(32);
  return bytes;
}

TEST(Gguf, split_files_are_one) {
  const test::TempDir dir;
  const auto path = [&](int no) { return dir.path() / fmt::format("m-0000{}-of-00002.gguf", no); };
  write(path(1), part(0, 2, 2, "a").text);
  write(path(2), part(1, 2, 2, "b").text);
  const GgufFile file = GgufFile::open(path(1));
  EXPECT_EQ(file.files().size(), 2u);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_TRUE(file.find_tensor("a") && file.find_tensor("b"));

  const std::string one = path(1).string(), two = path(2).string();
  const auto open = [&](int no) { return outcome([&] { GgufFile::open(path(no)); }); };
  EXPECT_EQ(open(2), "invalid_argument: " + two + ": part 2 of 2; name the first part");
  write(path(2), part(1, 2, 2, "a").text);
  EXPECT_EQ(open(1), "corrupt_file: " + one + ": tensor a occurs twice");
  write(path(2), part(0, 2, 2, "b").text);
  EXPECT_EQ(open(1), "corrupt_file: " + two + ": split.no is not 1, as the place among 2 parts says");
  write(path(2), part(1, 3, 2, "b").text);
  EXPECT_EQ(open(1), "corrupt_file: " + two + ": split.count is not 2, as the place among 2 parts says");
  write(path(2), part(1, 2, 2, "b").text);
  write(path(1), part(0, 2, 7, "a").text);
  EXPECT_EQ(open(1), "corrupt_file: " + one + ": split.tensors.count is 7, the 2 parts hold 2");
  write(path(1), part(0, 2, 2, "a").text);
  std::filesystem::remove(path(2));
  EXPECT_EQ(open(1), "not_found: " + two + ": No such file or directory");
  const auto other = dir.path() / "renamed.gguf";
  write(other, part(0, 2, 2, "a").text);
  EXPECT_EQ(outcome([&] { GgufFile::open(other); }),
            "corrupt_file: " + other.string() + ": split.count is 2, so the name must end in \"-00001-of-00002.gguf\"");
}

TEST(Gguf, opening_a_large_vocabulary_takes_under_50_ms) {
  GgufBytes bytes(0, 1);
  bytes.array("tokens", 8, 262'144);
  for (int i = 0; i < 262'144; ++i) bytes.string("token-" + std::to_string(i));
  const test::TempDir dir;
  write(dir.path() / "v.gguf", bytes.text);
  const double ms = test::cpu_ms([&] {
    const GgufFile file = GgufFile::open(dir.path() / "v.gguf");
    EXPECT_EQ(file.strings("tokens")->size(), 262'144u);
  });
  EXPECT_LT(ms, 50.0 * test::kSanitizerFactor);
}

}  // namespace
}  // namespace hearth::formats
