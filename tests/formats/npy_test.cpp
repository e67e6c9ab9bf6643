#include "formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/temp_dir.h"
#include "formats/builders.h"

namespace hearth::formats {
namespace {

using test::outcome;

TEST(Npy, header_and_rows) {
  const test::TempDir dir;
  const auto path = dir.path() / "x.npy";
  const float values[] = {1, 2, 3, 4, 5, 6};
  {
    NpyWriter writer(io::real_fs(), path, 3, 2);
    writer.write(std::span(values).first(4));
    EXPECT_FALSE(io::real_fs().exists(path));
    writer.write(std::span(values).last(2));
    writer.commit();
  }
  const std::string text = io::real_fs().read_file(path, 1000);
  ASSERT_EQ(text.size(), 128u + sizeof values);
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(text.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2),");
  EXPECT_EQ(text[127], '\n');
  EXPECT_EQ(std::memcmp(text.data() + 128, values, sizeof values), 0);
  write_npy(io::real_fs(), path, {}, 0, 7);
  EXPECT_EQ(io::real_fs().read_file(path, 1000).size(), 128u);
}

TEST(Npy, the_announced_shape_binds) {
  const test::TempDir dir;
  const auto path = dir.path() / "x.npy";
  const std::string name = path.string();
  const std::vector<float> values(6);
  EXPECT_EQ(outcome([&] { write_npy(io::real_fs(), path, values, 2, 2); }),
            "invalid_argument: " + name + ": 6 values after row 0 of [2, 2]");
  EXPECT_EQ(outcome([&] { write_npy(io::real_fs(), path, values, 2, 4); }),
            "invalid_argument: " + name + ": 6 values after row 0 of [2, 4]");
  EXPECT_EQ(outcome([&] { write_npy(io::real_fs(), path, values, 4, 2); }),
            "invalid_argument: " + name + ": 3 rows of [4, 2] were written");
  EXPECT_EQ(outcome([&] { write_npy(io::real_fs(), path, {}, -1, 2); }),
            "invalid_argument: " + name + ": shape [-1, 2]");
  EXPECT_TRUE(io::real_fs().list(dir.path()).empty());
}

}  // namespace
}  // namespace hearth::formats
