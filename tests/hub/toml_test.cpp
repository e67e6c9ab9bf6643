#include "hub/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::hub {
namespace {

TEST(Toml, reads_the_subset) {
  const auto entries = parse_toml(
      "\xEF\xBB\xBF# models\n"
      "smol = \"org/SmolLM2\" # behind\r\n"
      "'odd key' = 'C:\\raw'\n"
      "\n"
      "[run]\n"
      "seed = 1_000\n"
      "temperature = -0.5e1\n"
      "raw = true\n"
      "stop = [\"a\\n\\u00e9\", 'b', ]\n",
      "x.toml");
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries[0].key, "smol");
  EXPECT_EQ(*entries[0].value.string(), "org/SmolLM2");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[1].key, "odd key");
  EXPECT_EQ(*entries[1].value.string(), "C:\\raw");
  EXPECT_EQ(entries[2].table, "run");
  EXPECT_EQ(entries[2].value, json::Value(int64_t{1000}));
  EXPECT_EQ(entries[3].value, json::Value(-5.0));
  EXPECT_EQ(entries[4].value, json::Value(true));
  EXPECT_EQ(entries[5].value, json::Value(json::Array{"a\n\xC3\xA9", "b"}));
}

TEST(Toml, refuses_what_it_does_not_know_with_file_and_line) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "x.toml:2: expected '=' after 'a'"},
      {"a =", "the value is missing"},
      {"a = b", "x.toml:2: a: 'b' is no value"},
      {"a = \"b", "no closing"},
      {"a = \"\\q\"", "unknown escape"},
      {"a = \"\\ud800\"", "\\u needs"},
      {"a = 1 2", "x.toml:2: a: unexpected '2' after the value"},
      {"a.b = 1", "dotted"},
      {"a = {}", "inline tables"},
      {"a = [[1]]", "arrays of arrays"},
      {"a = [1", "expected ']'"},
      {"a = [", "no ']'"},
      {"[[a]]", "arrays of tables"},
      {"[a", "expected ']'"},
      {"a = \"\"\"b\"\"\"", "multi-line"},
      {"a = 1\na = 2", "given twice"},
      {"a = 1__0", "is no value"},
      {"a = 1e999", "is no value"},
      {"= 1", "expected a name"},
  };
  for (const auto& [text, reason] : cases) {
    try {
      parse_toml(std::string("\n") + text, "x.toml");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << text << ": " << error.what();
      EXPECT_EQ(std::string(error.what()).find("x.toml:"), 0u) << error.what();
    }
  }
  EXPECT_THROW(parse_toml(std::string((1 << 20) + 1, '#'), "x.toml"), Error);
}

}  // namespace
}  // namespace hearth::hub
