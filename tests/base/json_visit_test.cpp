#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "base/too_deep.h"

namespace hearth::json {
namespace {

class Tracing : public Visitor {
 public:
  void begin_object() override { trace += '{'; }
  void end_object() override { trace += '}'; }
  void begin_array() override { trace += '['; }
  void end_array() override { trace += ']'; }
  void key(std::string_view name) override { trace += fmt::format("{}:", name); }
  void scalar(Value value) override { trace += dump(value) + " "; }
  void string(std::string_view text) override { trace += fmt::format("'{}' ", text); }
  std::string trace;
};

std::string trace_of(std::string_view text) {
  Tracing visitor;
  try {
    visit(text, "doc", visitor);
  } catch (const Error& e) {
    return e.what();
  }
  return visitor.trace;
}

TEST(JsonVisit, events_come_in_document_order) {
  EXPECT_EQ(trace_of(R"({"a": [1, -2.5, true, null], "b\n": {"c": "x\u00e9\ty"}, "d": {}})"),
            "{a:[1 -2.5 true null ]b\n:{c:'x\u00e9\ty' }d:{}}");
  EXPECT_EQ(trace_of("18446744073709551615"), "18446744073709551616.0 ");
  EXPECT_EQ(trace_of(R"({"a": 1, "a": 2})"), "{a:1 a:2 }");  // duplicates are the visitor's business
}

TEST(JsonVisit, errors_carry_the_place) {
  EXPECT_EQ(trace_of("[1, 2"), "doc: incomplete JSON at byte 5");
  EXPECT_EQ(trace_of("[1] x"), "doc: extra data at byte 4");
  EXPECT_EQ(trace_of(std::string(97, '[')), "doc: values are more than 96 deep at byte 96");
}

TEST(JsonVisit, too_deep_is_an_error_of_its_own) {
  EXPECT_THROW(parse("[[[0]]]", "doc", {.depth = 2}), TooDeep);
  EXPECT_NO_THROW(parse("[[0]]", "doc", {.depth = 2}));
  try {
    parse("[[", "doc", {.depth = 2});
    FAIL();
  } catch (const TooDeep&) {
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::corrupt_file);
  }
}

TEST(JsonVisit, long_strings_with_escapes_arrive_whole) {
  std::string text = "\"", want;
  for (int i = 0; i < 50'000; ++i) text += "abc\\n", want += "abc\n";
  text += '"';
  EXPECT_EQ(parse(text, "doc").as_string("doc"), want);
}

TEST(JsonParse, duplicate_keys_are_found_in_small_and_large_objects) {
  for (const int members : {1, 3, 40, 5000}) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) text += fmt::format("\"k{}\": {}, ", i, i);
    EXPECT_EQ(parse(text + "\"last\": 0}", "doc").as_object("doc").size(), static_cast<size_t>(members) + 1);
    try {
      parse(text + "\"k0\": 0}", "doc");
      FAIL() << members;
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "doc: duplicate key \"k0\"");
    }
  }
}

}  // namespace
}  // namespace hearth::json
