#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace hearth {
namespace {

TEST(Printable, keeps_text_and_escapes_what_a_terminal_obeys) {
  EXPECT_EQ(printable("plain, caf\u00e9, \u65e5\u672c, \U0001f525"), "plain, caf\u00e9, \u65e5\u672c, \U0001f525");
  EXPECT_EQ(printable("\x1b]0;x\x07\n\r\t\x7f"), "\\x1b]0;x\\x07\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(printable("\u0085\u009b\u00a0"), "\\xc2\\x85\\xc2\\x9b\u00a0");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable(std::string(5000, 'x'), 10), "xxxxxxxxxx...");
  EXPECT_EQ(printable("\u65e5\u672c", 4), "\u65e5...");
  EXPECT_EQ(printable(std::string(101, 'x')), std::string(100, 'x') + "...");
}

TEST(Printable, json_is_valid_whatever_bytes_a_string_holds) {
  json::Object o;
  o["k\xff"] = std::string("a\xff\xe2\x82z\u65e5");
  EXPECT_EQ(json::dump(o), "{\"k\ufffd\": \"a\ufffd\ufffd\ufffdz\u65e5\"}");
}

}  // namespace
}  // namespace hearth
