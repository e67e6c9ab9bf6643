// R-03: the largest single allocation while parsing is file size + 1 MiB; peak memory 64 MiB + 2 x file (R-01).
// R-05: when the n-th allocation fails, parsing ends with bad_alloc and leaks nothing (under ASan).
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "base/json.h"
#include "support/allocation_hook.h"
#include "formats/builders.h"
#include "formats/parsers.h"

namespace hearth::formats {
namespace {

using test::GgufBytes;

TEST(AllocationHook, sees_what_is_allocated) {
  const test::AllocationWatch watch;
  {
    const std::vector<char> a(5000), b(7000);
  }
  const std::vector<char> c(100);
  EXPECT_EQ(watch.so_far().count, 3u);
  EXPECT_EQ(watch.so_far().largest, 7000u);
  EXPECT_GE(watch.so_far().peak, 12'000u);
  EXPECT_LT(watch.so_far().peak, 13'000u);
}

TEST(AllocationHook, fails_the_nth) {
  const test::AllocationWatch watch(2);
  const auto first = std::make_unique<int>(1);
  EXPECT_THROW(std::vector<int>(100), std::bad_alloc);
  EXPECT_NO_THROW(std::vector<int>(100));
}

void expect_bounded(const std::string& text, double (*read)(std::string_view), const char* name) {
  const test::AllocationWatch watch;
  const std::string outcome = test::outcome([&] { read(text); });
  const test::Allocations seen = watch.so_far();
  EXPECT_LE(seen.largest, text.size() + (1u << 20)) << name << ": " << outcome;
  EXPECT_LE(seen.peak, (62u << 20) + 2 * text.size()) << name << ": " << outcome;
}

std::string repeated(size_t bytes, const std::string& unit) {
  std::string text;
  while (text.size() + unit.size() <= bytes) text += unit;
  return text;
}

TEST(Allocation, counts_that_lie_R03) {
  for (const uint64_t count : {uint64_t{60'000}, uint64_t{1'000'000}, UINT64_MAX})
    for (const size_t size : {0u, 100u, 3'000'000u}) {
      GgufBytes keys(0, count), tensors(count, 0), strings(0, 1), numbers(0, 1), text(0, 1);
      strings.array("a", 8, count);
      numbers.array("a", 10, count);
      text.key("a", 8).number<uint64_t>(count);
      for (GgufBytes* file : {&keys, &tensors, &strings, &numbers, &text})
        expect_bounded(file->data(size, 1).text, test::read_gguf, "gguf");
    }
  for (const uint64_t length : {uint64_t{99'999'999}, uint64_t{1} << 40}) {
    std::string bytes;
    test::put(bytes, length);
    expect_bounded(bytes + "{}", test::read_safetensors, "safetensors");
  }
}

TEST(Allocation, large_well_formed_tables_R03) {
  GgufBytes keys(0, 65'536), tensors(60'000, 0), tokens(0, 1);
  for (int i = 0; i < 65'536; ++i) keys.scalar<uint8_t>("k" + std::to_string(i), 0, 1);
  for (uint64_t i = 0; i < 60'000; ++i) tensors.tensor("t" + std::to_string(i), {1}, 0, 32 * i);
  tensors.data(32 * 60'000);
  tokens.array("t", 8, 1'000'000);
  for (int i = 0; i < 1'000'000; ++i) tokens.string("");
  for (const GgufBytes* file : {&keys, &tensors, &tokens}) {
    EXPECT_EQ(test::outcome([&] { test::read_gguf(file->text); }), "accepted");
    expect_bounded(file->text, test::read_gguf, "gguf");
  }

  std::string header = "{", map = "{\"weight_map\":{";
  for (int i = 0; i < 100'000; ++i) {
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i ? "," : "", i, i, i + 1);
    map += fmt::format(R"({}"{}":"{}.safetensors")", i ? "," : "", i, i % 9'999);
  }
  expect_bounded(test::safetensors(header + "}", 100'000), test::read_safetensors, "safetensors");
  expect_bounded(map + "}}", test::read_index, "index");
}

TEST(Allocation, json_of_many_small_things_R03) {
  const size_t bytes = kConfigBytesMax - 10;
  for (const char* unit : {"0,", "[],", "{},", "[0],", "\"\",", "{\"a\":0},", "[[[[0]]]],", "[[[[[[[[]]]]]]]],"}) {
    expect_bounded("{\"x\":[" + repeated(bytes, unit) + "0]}", test::read_config, unit);
    expect_bounded("[" + repeated(bytes, unit) + "0]", test::read_config, unit);
    expect_bounded("{\"x\":[" + repeated(1u << 20, unit) + "0]}", test::read_index, unit);
    expect_bounded(test::safetensors("{\"x\":[" + repeated(1u << 20, unit) + "0]}", 0), test::read_safetensors, unit);
  }
  std::string members = "{";
  for (int i = 0; i < 80'000; ++i) members += fmt::format("\"{}\":0,", i);
  expect_bounded(members + "\"z\":0}", test::read_config, "members");
  expect_bounded("{\"" + repeated(bytes / 2, "ab\\n") + "\":0}", test::read_config, "long key");
  expect_bounded(test::safetensors("{\"" + repeated(8u << 20, "abcdefgh\\n") + "\":0}", 0), test::read_safetensors,
                 "long name");
}

TEST(Allocation, real_size_json_documents_R03) {
  std::string vocabulary = "{";
  for (int i = 0; i < 150'000; ++i) vocabulary += fmt::format("\"token{}\":{},", i, i);
  vocabulary += "\"z\":0}";
  const test::AllocationWatch watch;
  EXPECT_EQ(json::parse(vocabulary, "v").as_object("v").size(), 150'001u);
  EXPECT_LE(watch.so_far().largest, vocabulary.size() + (1u << 20));
}

void every_allocation_fails_once(const std::string& text, double (*read)(std::string_view)) {
  for (size_t nth = 1;; ++nth) {
    bool failed = false;
    {
      const test::AllocationWatch watch(nth);
      try {
        read(text);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    if (!failed) {
      EXPECT_GT(nth, 3u);
      return;
    }
  }
}

TEST(Allocation, every_allocation_may_fail_R05) {
  every_allocation_fails_once(test::sample_gguf().text, test::read_gguf);
  every_allocation_fails_once(
      test::safetensors(R"({"__metadata__":{"k":"a value that is long enough for the heap"},)"
                        R"("a name that is long enough for the heap":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                        2),
      test::read_safetensors);
  every_allocation_fails_once(R"({"weight_map":{"a":"x.safetensors","b":"y-with-a-long-name-0001.safetensors"}})",
                              test::read_index);
  every_allocation_fails_once(
      R"({"quantization":{"bits":4,"group_size":64,"model.layers.0.self_attn.q_proj":{"bits":8},"x":[1,[2,{"a":"b"}]]}})",
      test::read_config);
}

}  // namespace
}  // namespace hearth::formats
