#include "net/sse.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::net {
namespace {

TEST(Sse, events) {
  EXPECT_EQ(sse_event("", "x"), "data: x\n\n");
  EXPECT_EQ(sse_event("ping", "{}"), "event: ping\ndata: {}\n\n");
  EXPECT_EQ(sse_event("a", "b", "7"), "id: 7\nevent: a\ndata: b\n\n");
  EXPECT_EQ(sse_event("", ""), "data: \n\n");
}

TEST(Sse, every_line_of_the_data_is_a_field) {
  EXPECT_EQ(sse_event("", "a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(sse_event("", "\n\nevent: evil"), "data: \ndata: \ndata: event: evil\n\n");
  EXPECT_EQ(sse_event("", "a\n"), "data: a\ndata: \n\n");
}

TEST(Sse, comments) {
  EXPECT_EQ(sse_comment("ping"), ": ping\n\n");
  EXPECT_EQ(sse_comment("a\nb"), ": a\n: b\n\n");
}

TEST(Sse, names_are_one_line) {
  EXPECT_THROW(sse_event("a\nb", "x"), Error);
  EXPECT_THROW(sse_event("a", "x", "1\r"), Error);
}

}  // namespace
}  // namespace hearth::net
