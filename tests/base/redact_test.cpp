#include "base/redact.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth {
namespace {

struct Case {
  std::string_view text, want;
};

TEST(Redactor, takes_out_known_shapes) {
  const Redactor redactor;
  for (const auto& [text, want] : {
           Case{"token hf_AbCdEfGhIjKl used", "token hf_*** used"},
           Case{"sk-proj-1234567890abcdef", "sk-***"},
           Case{"(ghp_0123456789abcdef)", "(ghp_***)"},
           Case{"Authorization: Bearer abc.def-ghi_jkl==", "Authorization: Bearer ***"},
           Case{"authorization: bearer   eyJhbGciOi.x.y, next", "authorization: bearer   ***, next"},
           Case{"Basic dXNlcjpwYXNzd29yZA==", "Basic ***"},
           Case{R"({"api_key": "s3cr\"et", "n": 1})", R"({"api_key": "***", "n": 1})"},
           Case{"GET /x?api_key=abc&b=2", "GET /x?api_key=***&b=2"},
           Case{"PASSWORD = hunter2 ok", "PASSWORD = *** ok"},
           Case{"https://me:pw@example.org/path@2", "https://***@example.org/path@2"},
       })
    EXPECT_EQ(redactor.redact(text), want) << text;
}

TEST(Redactor, leaves_ordinary_text_alone) {
  const Redactor redactor;
  for (const std::string_view text :
       {"", "hf_short", "a risk-averse-and-long-word", "basic facts", "the bearer of news", "eos_token=2 max_tokens: 5",
        "https://example.org/a@b", "50% :// @", "password", "api_key", "shelf_AbCdEfGhIjKl"})
    EXPECT_EQ(redactor.redact(text), text);
}

TEST(Redactor, takes_out_registered_secrets_wherever_they_stand) {
  Redactor redactor;
  redactor.add("");
  redactor.add("tiger");
  redactor.add("tiger lily");
  redactor.add("tiger");
  EXPECT_EQ(redactor.redact("xtigerx tiger lily tige"), "x***x *** tige");
  // One that reaches past the end of a shape goes whole.
  redactor.add("abcdefghij klmno");
  EXPECT_EQ(redactor.redact("Bearer abcdefghij klmno"), "Bearer ***");
}

TEST(Redactor, is_idempotent) {
  Redactor redactor;
  redactor.add("tiger");
  for (const std::string_view text : {"Bearer abcdefghijk", "api_key=abc&x", "hf_AbCdEfGhIjKl tiger"}) {
    const std::string once = redactor.redact(text);
    EXPECT_EQ(redactor.redact(once), once);
  }
}

// Text from outside may be made to be slow: doubling it may not quadruple the time (8x, for a busy machine).
TEST(Redactor, is_linear_on_hostile_text) {
  const Redactor redactor;
  for (const std::string_view unit : {"://", "bearer ", "api_key=\"", "hf_hf_", "password", "://a:"}) {
    double seconds[2] = {1e9, 1e9};
    for (const int size : {0, 1}) {
      std::string text;
      while (text.size() < (size_t{200'000} << size)) text += unit;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto begin = std::chrono::steady_clock::now();
        const std::string out = redactor.redact(text);
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        seconds[size] = std::min(seconds[size], spent.count());
        ASSERT_FALSE(out.empty());
      }
    }
    EXPECT_LT(seconds[1], 8 * seconds[0] + 0.01) << unit;
  }
}

TEST(NamesSecret, knows_headers_and_fields) {
  for (const std::string_view name :
       {"Authorization", "cookie", "x-api-key", "api_key", "client_secret", "token", "hf_token"})
    EXPECT_TRUE(names_secret(name)) << name;
  for (const std::string_view name : {"eos_token", "tokens", "model", "key", ""})
    EXPECT_FALSE(names_secret(name)) << name;
}

}  // namespace
}  // namespace hearth
