// Reasoning that a client sends back stands under the name that templates know, whichever it came under.
#include <gtest/gtest.h>

#include "server/dialects/openai_chat.h"

namespace hearth::server::openai {
namespace {

std::string reasoning_of(const std::string& fields) {
  const json::Value body =
      json::parse(R"({"messages": [{"role": "assistant", "content": "Hi")" + fields + "}]}", "body");
  const Generation g = parse_chat(*body.object()).generation;
  const json::Value* found = (*g.messages.array())[0].get("reasoning_content");
  return found ? json::dump(*found) : "none";
}

TEST(ReasoningNames, either_is_read) {
  EXPECT_EQ(reasoning_of(""), "none");
  EXPECT_EQ(reasoning_of(R"(, "reasoning": "so")"), R"("so")");
  EXPECT_EQ(reasoning_of(R"(, "reasoning_content": "so")"), R"("so")");
  EXPECT_EQ(reasoning_of(R"(, "reasoning": "b", "reasoning_content": "a")"), R"("a")");
  EXPECT_EQ(reasoning_of(R"(, "reasoning": {"effort": "low"})"), "none");
}

}  // namespace
}  // namespace hearth::server::openai
