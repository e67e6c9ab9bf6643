// what a body may hold before it becomes Values. R-05: what the answer is where memory is too little for it.
#include "server/http/read_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "server/http/problem.h"
#include "support/allocation_hook.h"

namespace hearth::server {
namespace {

// The limit that refuses it; "": none does.
std::string refused_by(const std::string& text, const Limits& limits) {
  try {
    read_json_object(text, "the body", limits);
    return "";
  } catch (const RequestError& error) {
    EXPECT_NE(error.limit(), "") << error.what();
    return error.limit();
  }
}

std::string repeated(const std::string& piece, int64_t n) {
  std::string text;
  for (int64_t i = 0; i < n; ++i) text += (i > 0 ? "," : "") + piece;
  return text;
}

TEST(ReadJson, items_of_all_arrays_count_together) {
  Limits limits;
  limits.set(LimitId::json_items, 100);
  for (const auto& [n, limit] : {std::pair(99, ""), std::pair(100, ""), std::pair(101, "json-items")}) {
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("0", n) + "]}", limits), limit) << n;
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("\"x\"", n) + "]}", limits), limit) << n;
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("{}", n) + "]}", limits), limit) << n;
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("[]", n) + "]}", limits), limit) << n;
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("0", n - 50) + "],\"b\":[" + repeated("null", 50) + "]}", limits), limit)
        << n;
    // An array in an array is an item, and so is what it holds.
    EXPECT_EQ(refused_by("{\"a\":[" + repeated("[0]", 49) + "," + repeated("0", n - 98) + "]}", limits), limit) << n;
  }
  EXPECT_EQ(refused_by("{\"a\":" + std::string(90, '[') + repeated("0", 11) + std::string(90, ']') + "}", limits), "")
      << "the outermost array is a member";
}

TEST(ReadJson, members_are_no_items) {
  Limits limits;
  limits.set(LimitId::json_items, 100);
  limits.set(LimitId::json_members, 200);
  std::string members = "\"k\":0";
  for (int i = 1; i < 200; ++i) members += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(refused_by("{" + members + "}", limits), "");
  EXPECT_EQ(refused_by("{\"one\":0," + members + "}", limits), "json-members");
}

TEST(ReadJson, a_million_ids_are_far_from_the_default) {
  EXPECT_EQ(refused_by("{\"tokens\":[" + repeated("49151", 1'000'000) + "]}", {}), "");
}

// What is taken costs a bounded multiple of a body, whatever its shape; without the bound 16 M items are 640 MB.
TEST(ReadJson, the_most_items_cost_a_bounded_memory) {
  constexpr size_t kMost = size_t{200} << 20;
  const auto half = Limits()[LimitId::json_items] / 2;
  for (const auto& [piece, n] :
       {std::pair("0", 2 * half), std::pair("[]", 2 * half), std::pair("[0]", half), std::pair("[[]]", half)}) {
    const std::string text = "{\"a\":[" + repeated(piece, n) + "]}";
    const test::AllocationWatch watch;
    EXPECT_EQ(refused_by(text, {}), "");
    EXPECT_LE(watch.so_far().peak, kMost) << piece;
  }
}

TEST(ReadJson, the_depth_is_that_of_the_table) {
  Limits limits;
  limits.set(LimitId::json_depth, 8);
  for (const auto& [depth, limit] : {std::pair(7, ""), std::pair(8, ""), std::pair(9, "json-depth")}) {
    const auto n = static_cast<size_t>(depth - 1);
    EXPECT_EQ(refused_by("{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}", limits), limit) << depth;
  }
}

TEST(ReadJson, what_is_no_json_passes_no_limit) {
  for (const char* text : {"", "{", "[]", "1", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}"}) {
    try {
      read_json_object(text, "the frame", {});
      FAIL() << text;
    } catch (const RequestError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("the frame ")) << error.what();
      EXPECT_EQ(error.limit(), "");
    }
  }
}

// Whichever allocation fails, the answer is 503 in its dialect's shape, and the same body is read behind it.
TEST(ReadJson, too_little_memory_is_an_answer) {
  const std::string turn = "{\"role\":\"user\",\"content\":\"a text that is long enough for the heap\"}";
  const std::string body = "{\"messages\":[" + repeated(turn, 9) + "]}";
  const Limits limits;
  size_t all = 0;
  {
    const test::AllocationWatch watch;
    read_json_object(body, "the body", limits);
    all = watch.so_far().count;
  }
  ASSERT_GT(all, 5u);
  for (size_t nth = 1; nth <= all; ++nth) {
    Problem problem;
    try {
      const test::AllocationWatch watch(nth);
      read_json_object(body, "the body", limits);
    } catch (...) {
      problem = problem_at_hand();
    }
    ASSERT_EQ(problem.status, 503) << nth << " of " << all << ": " << problem.message;
    EXPECT_EQ(problem.code, "out_of_memory");
    EXPECT_GT(problem.retry_after_s, 0);
    const net::Response openai = error_response(Dialect::openai, problem, "req_1");
    const net::Response anthropic = error_response(Dialect::anthropic, problem, "req_1");
    EXPECT_EQ(openai.status, 503);
    EXPECT_EQ(anthropic.status, 503);
    EXPECT_NE(openai.body.find("\"code\": \"out_of_memory\""), std::string::npos) << openai.body;
    EXPECT_NE(anthropic.body.find("\"type\": \"overloaded_error\""), std::string::npos) << anthropic.body;
  }
  EXPECT_EQ(refused_by(body, limits), "");
}

TEST(ReadJson, other_exceptions_are_not_answered_here) {
  try {
    try {
      throw 7;
    } catch (...) {
      problem_at_hand();
    }
    FAIL();
  } catch (int) {
  }
}

}  // namespace
}  // namespace hearth::server
