#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace hearth {
namespace {

TEST(Printable, keeps_text_and_escapes_what_a_terminal_obeys) {
  EXPECT_EQ(printable_line("plain, caf\u00e9, \u65e5\u672c, \U0001f525"), "plain, caf\u00e9, \u65e5\u672c, \U0001f525");
  EXPECT_EQ(printable_line("\x1b]0;x\x07\n\r\t\x7f"), "\\x1b]0;x\\x07\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(printable_line("\u0085\u009b\u00a0"), "\\xc2\\x85\\xc2\\x9b\u00a0");
  EXPECT_EQ(printable_line("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable_line(std::string(5000, 'x'), 10), "xxxxxxxxxx...");
  EXPECT_EQ(printable_line("\u65e5\u672c", 4), "\u65e5...");
}

TEST(Printable, knows_well_formed_characters) {
  for (const char* good : {"a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(utf8_prefix(good), std::string_view(good).size());
  for (const char* bad : {"", "\x80", "\xc1\x81", "\xc2", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"})
    EXPECT_EQ(utf8_prefix(bad), 0u);
}

TEST(Printable, json_is_valid_whatever_bytes_a_string_holds) {
  json::Object o;
  o["k\xff"] = std::string("a\xff\xe2\x82z\u65e5");
  EXPECT_EQ(json::dump(o), "{\"k\ufffd\": \"a\ufffd\ufffd\ufffdz\u65e5\"}");
}

}  // namespace
}  // namespace hearth
