#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/outcome.h"
#include "text/chat_template.h"

namespace hearth::text {
namespace {

constexpr std::string_view kChatml =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% "
    "endif %}";

ChatInput input(std::string_view messages) {
  ChatInput in;
  in.messages = json::parse(messages, "messages");
  return in;
}

std::string error_of(const ChatTemplate& t, const ChatInput& in) {
  try {
    t.render(in);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    return e.what();
  }
  return "";
}

TEST(ChatTemplate, renders_messages_and_prompt) {
  const ChatTemplate t(kChatml);
  ChatInput in = input(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "h\u00e9"}])");
  EXPECT_EQ(t.render(in), "<|system|>s\n<|user|>h\u00e9\n<|assistant|>");
  in.add_generation_prompt = false;
  EXPECT_EQ(t.render(in), "<|system|>s\n<|user|>h\u00e9\n");
}

TEST(ChatTemplate, knows_what_a_template_uses) {
  const ChatTemplate plain(kChatml);
  EXPECT_FALSE(plain.uses_tools());
  EXPECT_FALSE(plain.takes_parts());
  EXPECT_FALSE(plain.handles_developer());
  EXPECT_FALSE(plain.marks_generation());
  const ChatTemplate rich(
      "{% if tools %}{{ tools|tojson }}{% endif %}{% for m in messages %}{% if m.role == 'developer' %}{% endif %}"
      "{% for part in m['content'] %}{{ part.text }}{% endfor %}{% generation %}{% endgeneration %}{% endfor %}{{ "
      "enable_thinking }}");
  EXPECT_TRUE(rich.uses_tools());
  EXPECT_TRUE(rich.takes_parts());
  EXPECT_TRUE(rich.handles_developer());
  EXPECT_TRUE(rich.marks_generation());
  EXPECT_TRUE(rich.mentions("enable_thinking"));
  EXPECT_FALSE(rich.mentions("documents"));
}

TEST(ChatTemplate, refuses_bad_input_with_its_place) {
  const ChatTemplate t(kChatml);
  EXPECT_EQ(error_of(t, input("{}")), "messages: expected an array, found an object");
  EXPECT_EQ(error_of(t, input("[1]")), "messages[0]: expected an object, found a number");
  ChatInput bad = input("[]");
  bad.messages.array()->push_back(json::Object{.members = {{"content", json::Value("\xFF")}}});
  EXPECT_EQ(error_of(t, bad), "messages: a string is not UTF-8");
  ChatInput reserved = input("[]");
  reserved.extra["messages"] = 1;
  EXPECT_EQ(error_of(t, reserved), "template variable \"messages\" is reserved");
  ChatInput tools = input("[]");
  tools.tools = "x";
  EXPECT_EQ(error_of(t, tools), "tools: expected an array, found a string");
}

TEST(ChatTemplate, absent_tools_are_none_and_extras_arrive) {
  const ChatTemplate t(
      "{{ tools is none }}{{ documents is none }}{{ enable_thinking }}{{ bos_token }}{{ eos_token }}{{ other is "
      "defined }}");
  ChatInput in = input("[]");
  in.extra["enable_thinking"] = false;
  in.bos_token = "<s>";
  in.eos_token = "</s>";
  EXPECT_EQ(t.render(in), "TrueTrueFalse<s></s>False");
}

TEST(ChatTemplate, a_text_that_is_too_long_is_not_the_templates_fault) {
  const ChatTemplate t("<{{ messages[0].content | trim }}>");
  const auto said = [](size_t bytes) {
    json::Object message;
    message["role"] = "user";
    message["content"] = std::string(bytes, 'x');
    ChatInput in;
    in.messages = json::Array{json::Value(std::move(message))};
    return in;
  };
  const size_t around = std::string_view("rolecontentuser").size(), most = (8 << 20) - around;
  EXPECT_EQ(t.render(said(most)).size(), most + 2);
  EXPECT_EQ(test::outcome([&] { t.render(said(most + 1)); }),
            "out_of_memory: the conversation has 8388609 bytes of text, a prompt takes at most 8388608");
  ChatInput tools = said(most);
  tools.tools = json::Array{json::Value("x")};
  EXPECT_EQ(test::outcome([&] { t.render(tools); }),
            "out_of_memory: the conversation has 8388609 bytes of text, a prompt takes at most 8388608");
  // What a template makes of a text is its own.
  const ChatTemplate twice("{{ messages[0].content * 3 }}", "twice");
  const jinja::RenderLimits limits{.output_bytes = 100, .input_bytes = 1000};
  EXPECT_EQ(twice.render(said(50), limits).size(), 150u);
  EXPECT_EQ(test::outcome([&] { twice.render(said(100), limits); }),
            "invalid_argument: twice, line 1: a string of 3 times 100 bytes is beyond 215 bytes");
}

TEST(ChatTemplate, prints_the_time_that_it_is_given) {
  const ChatTemplate t("{{ strftime_now('%d %b %Y %H:%M') }}");
  ChatInput in = input("[]");
  in.now = std::tm{};
  in.now->tm_year = 126;
  in.now->tm_mon = 6;
  in.now->tm_mday = 4;
  in.now->tm_hour = 9;
  EXPECT_EQ(t.render(in), "04 Jul 2026 09:00");
}

}  // namespace
}  // namespace hearth::text
