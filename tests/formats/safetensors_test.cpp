#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "support/temp_dir.h"
#include "formats/builders.h"

namespace hearth::formats {
namespace {

using test::outcome;
using test::safetensors;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Safetensors, the_table_is_in_the_order_of_the_data) {
  const std::string bytes = safetensors(
      R"({"__metadata__":{"format":"mlx","x":""},"b":{"shape":[2,3],"dtype":"F16","data_offsets":[16,28]},)"
      R"("a":{"dtype":"U32","shape":[4],"data_offsets":[0,16]},"s":{"dtype":"F8_E4M3","shape":[],"data_offsets":[28,29]}}  )",
      29);
  const SafetensorsHeader header = parse_safetensors(test::as_bytes(bytes), "f");
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].dtype, DType::u32);
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_TRUE((header.tensors[1].shape == Shape{2, 3}));
  EXPECT_EQ(header.tensors[1].data.size(), 12u);
  EXPECT_EQ(header.tensors[2].dtype_name, "F8_E4M3");
  EXPECT_FALSE(header.tensors[2].dtype);
  ASSERT_EQ(header.metadata.size(), 2u);
  EXPECT_EQ(header.metadata[0], (std::pair<std::string, std::string>("format", "mlx")));
}

TEST(Safetensors, metadata_may_be_null) {
  const std::string bytes = safetensors(R"({"__metadata__":null})", 0);
  EXPECT_TRUE(parse_safetensors(test::as_bytes(bytes), "f").metadata.empty());
}

TEST(Safetensors, every_dtype_has_its_size) {
  const std::pair<const char*, int> sizes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                               {"I32", 4}, {"U32", 4}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  for (const auto& [name, size] : sizes) {
    const auto bytes = [&](int n) {
      return safetensors(fmt::format(R"({{"a":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", name, n),
                         static_cast<size_t>(n));
    };
    const SafetensorsHeader header = parse_safetensors(test::as_bytes(bytes(3 * size)), "f");
    ASSERT_TRUE(header.tensors[0].dtype) << name;
    EXPECT_EQ(size_of(*header.tensors[0].dtype), static_cast<size_t>(size)) << name;
    EXPECT_EQ(outcome([&] { parse_safetensors(test::as_bytes(bytes(3 * size + 1)), "f"); }),
              fmt::format("corrupt_file: f: tensor a: {} [3] needs {} bytes, data_offsets hold {}", name, 3 * size,
                          3 * size + 1));
  }
}

TEST(Safetensors, views_name_what_is_absent_or_unreadable) {
  const test::TempDir dir;
  const auto path = dir.path() / "a.safetensors";
  write(
      path,
      safetensors(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"e":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[8,9]}})",
          9));
  Safetensors opened = Safetensors::open(path);
  const Safetensors file = std::move(opened);
  EXPECT_EQ(file.view("a").shape.size(), 2);
  EXPECT_EQ(file.view("a").value(1), std::bit_cast<float>(0x3c3c3c3cu));
  EXPECT_EQ(outcome([&] { file.view("c"); }), "corrupt_file: " + path.string() + ": tensor c is absent");
  EXPECT_EQ(outcome([&] { file.view("e"); }), "invalid_argument: " + path.string() +
                                                  ": tensor e has dtype F8_E5M2; "
                                                  "supported are F64 F32 F16 BF16 I64 I32 U32 I8 U8 BOOL");
}

std::string shard(const std::string& tensor) {
  return safetensors(fmt::format(R"({{"{}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}})", tensor), 4);
}

TEST(Safetensors, shards_by_name_order) {
  const test::TempDir dir;
  EXPECT_EQ(outcome([&] { Safetensors::open_dir(dir.path()); }),
            "not_found: " + dir.path().string() + ": no model*.safetensors");
  write(dir.path() / "model-00002-of-00002.safetensors", shard("b"));
  write(dir.path() / "model-00001-of-00002.safetensors", shard("a"));
  write(dir.path() / "adapters.safetensors", shard("other"));
  const Safetensors set = Safetensors::open_dir(dir.path());
  ASSERT_EQ(set.tensors().size(), 2u);
  EXPECT_EQ(set.find("a")->file, 0u);
  EXPECT_EQ(set.find("b")->file, 1u);
  EXPECT_FALSE(set.find("other"));

  write(dir.path() / "model-extra.safetensors", shard("a"));
  EXPECT_EQ(outcome([&] { Safetensors::open_dir(dir.path()); }),
            "corrupt_file: tensor a is in " + (dir.path() / "model-00001-of-00002.safetensors").string() + " and in " +
                (dir.path() / "model-extra.safetensors").string());
}

TEST(Safetensors, shards_by_index) {
  const test::TempDir dir;
  const auto index = dir.path() / "model.safetensors.index.json";
  const auto with = [&](const std::string& map) {
    write(index, fmt::format(R"({{"metadata":{{"total_size":8,"x":[{{}}]}},"weight_map":{{{}}}}})", map));
    return outcome([&] { Safetensors::open_dir(dir.path()); });
  };
  write(dir.path() / "x.safetensors", shard("a"));
  write(dir.path() / "y.safetensors", shard("b"));
  EXPECT_EQ(with(R"("b":"y.safetensors","a":"x.safetensors")"), "accepted");
  EXPECT_EQ(Safetensors::open_dir(dir.path()).tensors().size(), 2u);
  EXPECT_EQ(with(R"("a":"x.safetensors")"), "accepted");
  const std::string name = index.string();
  EXPECT_EQ(with(R"("a":"y.safetensors","b":"y.safetensors")"),
            "corrupt_file: " + name + ": tensor a is not in y.safetensors");
  EXPECT_EQ(with(R"("a":"x.safetensors","c":"y.safetensors")"),
            "corrupt_file: " + name + ": tensor c is not in y.safetensors");
  EXPECT_EQ(with(R"("a":"x.safetensors","b":"z.safetensors")"),
            "corrupt_file: " + name + ": z.safetensors is named but absent");
  write(dir.path() / "y.safetensors", shard("a"));
  EXPECT_EQ(with(R"("a":"x.safetensors","b":"y.safetensors")"),
            "corrupt_file: tensor a is in " + (dir.path() / "x.safetensors").string() + " and in " +
                (dir.path() / "y.safetensors").string());
}

TEST(Safetensors, opening_ten_thousand_tensors_takes_under_50_ms) {
  std::string header = "{";
  for (int i = 0; i < 10'000; ++i)
    header += fmt::format(R"({}"model.layers.{}.weight":{{"dtype":"BF16","shape":[2,4],"data_offsets":[{},{}]}})",
                          i ? "," : "", i, 16 * i, 16 * i + 16);
  const test::TempDir dir;
  write(dir.path() / "model.safetensors", safetensors(header + "}", 160'000));
  const double ms = test::cpu_ms([&] { EXPECT_EQ(Safetensors::open_dir(dir.path()).tensors().size(), 10'000u); });
  EXPECT_LT(ms, 50.0 * test::kSanitizerFactor);
}

}  // namespace
}  // namespace hearth::formats
