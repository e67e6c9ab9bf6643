#include "cli/chat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/scripted_backend.h"
#include "hub/fixtures.h"
#include "support/temp_dir.h"

namespace hearth::cli {
namespace {
using Kind = InputLine::Kind;

class ScriptedLines : public LineSource {
 public:
  std::deque<InputLine> lines;
  InputLine read(const std::string&) override {
    if (lines.empty()) return {Kind::end, ""};
    InputLine line = lines.front();
    lines.pop_front();
    return line;
  }
};

class ChatTest : public ::testing::Test {
 protected:
  bool run(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) lines.lines.push_back({Kind::text, text});
    return chat.run();
  }
  bool noted(std::string_view part) const { return notes.find(part) != std::string::npos; }

  testing::ScriptedBackend backend;
  ScriptedLines lines;
  Interrupt interrupt;
  std::string answers, notes;
  test::TempDir folder;
  Chat chat{backend,
            lines,
            interrupt,
            {.answer = [this](std::string_view text) { answers += text; },
             .note = [this](std::string_view text) { notes += std::string(text) + "\n"; },
             .error = [this](std::string_view text) { notes += std::string(text) + "\n"; }},
            test::fixed_env({{"HOME", folder.path().string()}})};
};

TEST_F(ChatTest, keeps_the_conversation) {
  backend.answers = {"Hello.", "Four.\n"};
  EXPECT_TRUE(run({"Hi", "", "  2+2?  ", "/bye", "unread"}));
  EXPECT_EQ(answers, "Hello.\nFour.\n");
  ASSERT_EQ(backend.asked.size(), 2u);
  ASSERT_EQ(backend.asked[1].size(), 3u);
  EXPECT_EQ(backend.asked[1][1].content, "Hello.");
  EXPECT_EQ(backend.asked[1][2].content, "2+2?");
  EXPECT_EQ(lines.lines.size(), 1u);
}

TEST_F(ChatTest, several_lines_in_quotes) {
  backend.answers = {"ok"};
  run({"\"\"\"\nline one\n  line two\n\"\"\""});
  EXPECT_EQ(backend.asked[0][0].content, "line one\n  line two");
}

TEST_F(ChatTest, an_interrupt_stops_the_answer_and_keeps_the_chat) {
  backend.answers = {"long answer", "next"};
  bool first = true;
  backend.after_first_piece = [&] {
    if (std::exchange(first, false)) interrupt.request();
  };
  run({"Hi", "go on"});
  EXPECT_EQ(answers, "l\nnext\n");
  EXPECT_TRUE(noted("stopped"));
  ASSERT_EQ(backend.asked.size(), 2u);
  EXPECT_EQ(backend.asked[1][1].content, "l");
}

TEST_F(ChatTest, a_failed_answer_leaves_the_chat_as_it_was) {
  backend.answers = {"!the template refuses this", "ok"};
  run({"Hi", "again", "too long"});
  EXPECT_TRUE(noted("the template refuses this"));
  EXPECT_TRUE(noted("the context holds 5"));
  EXPECT_TRUE(noted("/clear"));
  ASSERT_EQ(chat.messages().size(), 2u);
  EXPECT_EQ(chat.messages()[0].content, "again");
}

TEST_F(ChatTest, says_which_limit_cut_an_answer) {
  backend.answers = {"#long"};
  run({"Hi"});
  EXPECT_TRUE(noted("/set max-tokens"));
  EXPECT_FALSE(noted("/clear"));
  notes.clear();
  backend.answers = {"#full"};
  run({"Hi"});
  EXPECT_TRUE(noted("the context is full; /clear"));
  EXPECT_FALSE(noted("/set max-tokens"));
}

TEST_F(ChatTest, interrupt_at_the_prompt_gives_a_hint) {
  lines.lines.push_back({Kind::interrupted, ""});
  EXPECT_TRUE(run({}));
  EXPECT_TRUE(noted("Ctrl-D"));
}

TEST_F(ChatTest, a_second_interrupt_in_a_row_ends_the_chat) {
  backend.answers = {"one", "two"};
  for (const char* entry : {"", "Hi", "", "", "never asked"})
    lines.lines.push_back({*entry ? Kind::text : Kind::interrupted, entry});
  EXPECT_TRUE(run({}));
  EXPECT_EQ(backend.asked.size(), 1u);
}

TEST_F(ChatTest, commands) {
  backend.answers = {"one", "two", "three"};
  run({"/help", "/system Be brief.", "Hi", "/stats", "/set temperature 0.7", "/set", "/set max_tokens", "/clear", "Ho",
       "/system"});
  for (const char* name : {"/help", "/system", "/set", "/save", "/load", "/stats", "/bye"})
    EXPECT_TRUE(noted(name)) << name;
  EXPECT_EQ(backend.asked[0][0].role, "system");
  EXPECT_EQ(backend.asked[0][0].content, "Be brief.");
  EXPECT_EQ(backend.asked[1].size(), 2u);  // the instructions survive /clear
  EXPECT_TRUE(noted("7 tokens"));
  EXPECT_EQ(backend.temperature, "0.7");
  EXPECT_TRUE(noted("max-tokens is 256"));
  EXPECT_TRUE(noted("Be brief."));
}

TEST_F(ChatTest, mistakes_get_suggestions) {
  run({"/stast", "/zzzzzz", "/set temprature 1", "/set temperature hot", "/save", "/load /absent/file", "/stats"});
  EXPECT_TRUE(noted("did you mean /stats?"));
  EXPECT_TRUE(noted("/help lists them"));
  EXPECT_TRUE(noted("did you mean temperature?"));
  EXPECT_TRUE(noted("must be a number"));
  EXPECT_TRUE(noted("needs a file name"));
  EXPECT_TRUE(noted("/absent/file"));
  EXPECT_TRUE(noted("no answer yet"));
  EXPECT_TRUE(backend.asked.empty());
}

TEST_F(ChatTest, saves_and_loads) {
  backend.answers = {"Hello.", "again"};
  run({"/system Be brief.", "Hi", "/save ~/chat.json", "/clear", "/load ~/chat.json", "more"});
  ASSERT_EQ(backend.asked[1].size(), 4u);
  EXPECT_EQ(backend.asked[1][2].content, "Hello.");
  const auto messages = parse_conversation(test::read_bytes(folder.path() / "chat.json"), "chat.json");
  EXPECT_EQ(messages.size(), 3u);
}

TEST(Conversation, refuses_what_is_no_conversation) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "byte"},
      {"[]", "messages is absent"},
      {"{}", "messages is absent"},
      {R"({"messages": 1})", "messages"},
      {R"({"schema_version": 2, "messages": []})", "schema_version is 2"},
      {R"({"messages": [{"role": "user"}]})", "messages[0]"},
      {R"({"messages": [{"role": "assistant", "content": "x"}]})", "it must be user or system"},
      {R"({"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]})", "messages[1].role"},
      {R"({"messages": [{"role": "user", "content": "x"}]})", "no answer"},
      {R"({"messages": [{"role": "user", "content": 3}]})", "content"},
  };
  for (const auto& [text, part] : cases) {
    try {
      parse_conversation(text, "f.json");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt_file) << text;
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << text << ": " << error.what();
    }
  }
}

TEST(PlainLines, split_entries_as_the_editor_does) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = "one\r\n\n\"\"\"two\nlines\"\"\"\nbad \xFF\nlast";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  PlainLines lines(ends[0]);
  EXPECT_EQ(lines.read("").text, "one");
  EXPECT_EQ(lines.read("").text, "");
  EXPECT_EQ(lines.read("").text, "\"\"\"two\nlines\"\"\"");
  EXPECT_EQ(lines.read("").text, "bad \xEF\xBF\xBD");
  EXPECT_EQ(lines.read("").text, "last");
  EXPECT_EQ(lines.read("").kind, Kind::end);
  ::close(ends[0]);
}

}  // namespace
}  // namespace hearth::cli
