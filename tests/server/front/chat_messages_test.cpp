#include "server/front/chat_messages.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::server::test {
namespace {

constexpr size_t kMost = 100;

std::string say(ChatMessages& messages, const std::string& parent, const std::string& role, const std::string& content,
                const std::string& reason = "stop") {
  ChatMessage message{.id = messages.next_id(), .parent = parent, .role = role, .content = content};
  if (role == "assistant") message.finish_reason = reason;
  const std::string id = message.id;
  messages.add(std::move(message));
  return id;
}

std::string words(const json::Array& path) {
  std::string out;
  for (const json::Value& one : path)
    out += one.get("role")->as_string("role").substr(0, 1) + ":" + one.get("content")->as_string("content") + " ";
  return out;
}

TEST(ChatMessages, a_path_goes_from_the_first_message_to_its_leaf) {
  ChatMessages messages(kMost);
  const std::string one = say(messages, "", "user", "1");
  const std::string two = say(messages, one, "assistant", "2");
  const std::string again = say(messages, one, "assistant", "2b");
  const std::string three = say(messages, two, "user", "3");
  EXPECT_EQ(words(messages.path(three, "")), "u:1 a:2 u:3 ");
  EXPECT_EQ(words(messages.path(again, "S")), "s:S u:1 a:2b ");
  EXPECT_EQ(messages.head(), three);
  EXPECT_EQ(messages.history().size(), 4u);
  EXPECT_TRUE(messages.history()[0].get("parent_id") == nullptr);
  EXPECT_EQ(*messages.history()[3].get("parent_id"), json::Value(two));
  EXPECT_EQ(messages.find("m99"), nullptr);
}

TEST(ChatMessages, answers_that_never_came_are_not_told_to_the_model) {
  ChatMessages messages(kMost);
  const std::string one = say(messages, "", "user", "1");
  const std::string none = say(messages, one, "assistant", "", "aborted");
  const std::string two = say(messages, none, "user", "2");
  const std::string part = say(messages, two, "assistant", "par", "aborted");
  const std::string failed = say(messages, part, "assistant", "", "error");
  EXPECT_EQ(words(messages.path(failed, "")), "u:1 u:2 a:par ");
  EXPECT_EQ(words(messages.path(say(messages, one, "assistant", "", "stop"), "")), "u:1 a: ");
}

TEST(ChatMessages, thinking_goes_along) {
  ChatMessages messages(kMost);
  messages.add(
      {.id = "a", .parent = "", .role = "assistant", .content = "yes", .thinking = "hm", .finish_reason = "stop"});
  EXPECT_EQ(*messages.path("a", "")[0].get("reasoning_content"), json::Value("hm"));
}

TEST(ChatMessages, has_bounds) {
  ChatMessages messages(kMost);
  messages.require_room(ChatMessages::kBytesMax);
  EXPECT_THROW(messages.require_room(ChatMessages::kBytesMax + 1), Error);
  say(messages, "", "user", std::string(1000, '\n'));  // each is two bytes in a history
  EXPECT_GT(messages.bytes(), 2000u);
  EXPECT_THROW(messages.require_room(ChatMessages::kBytesMax - 2000), Error);
  for (size_t i = messages.size(); i + 2 < kMost; ++i) say(messages, "", "user", "x");
  messages.require_room(0);
  say(messages, "", "user", "x");
  EXPECT_THROW(messages.require_room(0), Error);  // one for the prompt, one for its answer
}

}  // namespace
}  // namespace hearth::server::test
