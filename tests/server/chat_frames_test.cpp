// Frames of /ws/chat as text.
#include "server/dialects/chat_frames.h"

#include <gtest/gtest.h>

namespace hearth::server::frames::test {
namespace {

Standing check_text(std::string_view text) { return check(read_frame(text, {})); }

std::string param_of(std::string_view text) {
  try {
    check_text(text);
  } catch (const RequestError& error) {
    return error.param();
  }
  return "taken";
}

TEST(ChatFrames, are_checked_by_their_table) {
  EXPECT_EQ(check_text(R"({"type":"prompt","id":1,"text":"Hi","more":"ignored","parent":null})"), Standing::taken);
  EXPECT_EQ(check_text(R"({"type":"steer","id":"a","text":7})"), Standing::not_yet);
  EXPECT_EQ(param_of(R"({"type":"prompt","id":1})"), "text");
  EXPECT_EQ(param_of(R"({"type":"prompt","id":1,"text":""})"), "text");
  EXPECT_EQ(param_of(R"({"type":"prompt","id":1,"text":"Hi","images":[]})"), "taken");
  EXPECT_EQ(param_of(R"({"type":"prompt","id":1,"text":"Hi","images":["x"]})"), "images");
  EXPECT_EQ(param_of(R"({"type":"prompt","id":1.5,"text":"Hi"})"), "id");
  EXPECT_EQ(param_of(R"({"type":"nothing","id":1})"), "type");
  EXPECT_EQ(param_of(R"({"id":1})"), "type");
  EXPECT_EQ(param_of(R"({"type":"resume","id":1,"conversation":"c","after_seq":-1})"), "after_seq");
  EXPECT_EQ(param_of(R"({"type":"set_sampling","id":1,"top_p":2})"), "top_p");
  EXPECT_EQ(param_of(R"({"type":"set_sampling","id":1,"max_tokens":-1})"), "max_tokens");
  EXPECT_EQ(param_of(R"({"type":"set_thinking","id":1,"effort":"none"})"), "taken");
}

TEST(ChatFrames, an_id_is_known_even_where_the_rest_is_wrong) {
  EXPECT_EQ(read_frame(R"({"id":"x"})", {}).id, json::Value("x"));
  EXPECT_TRUE(read_frame(R"({"id":[]})", {}).id.is_null());
  EXPECT_THROW(read_frame("[]", {}), RequestError);
  EXPECT_THROW(read_frame("{", {}), RequestError);
}

TEST(ChatFrames, a_turn_is_written_as_frames) {
  const auto turn = std::make_shared<Turn>();
  turn->number = 3;
  turn->message = "m2";
  turn->parent = "m1";
  const auto writer = turn_writer(turn);
  EXPECT_EQ(writer->begin({.request_id = "r", .model = "org/name"}, {.prompt = 5, .cached = 2, .max_tokens = 9}), "");
  Event event{.kind = Event::Kind::reasoning, .text = "hm\n", .tokens = 2};
  EXPECT_EQ(writer->event(event), "{\"type\": \"thinking_delta\", \"turn\": 3, \"text\": \"hm\\n\"}\n");
  event.kind = Event::Kind::text;
  event.text = "Yes";
  EXPECT_EQ(writer->event(event), "{\"type\": \"text_delta\", \"turn\": 3, \"text\": \"Yes\"}\n");
  EXPECT_EQ(turn->usage().completion, 4);  // were it stopped here
  EXPECT_EQ(turn->usage().prompt, 5);
  Event finish{.kind = Event::Kind::finish, .reason = "length"};
  finish.usage = {.prompt = 5, .cached = 2, .completion = 9, .reasoning = 4};
  EXPECT_EQ(writer->event(finish), "");
  EXPECT_EQ(writer->end(), "") << "the chat says it, once the turn has left the conversation";
  const json::Value end = json::parse(turn_end(*turn, turn->answer.reason), "turn_end");
  EXPECT_EQ(*end.get("type"), json::Value("turn_end"));
  EXPECT_EQ(*end.get("reason"), json::Value("length"));
  EXPECT_EQ(*end.get("model"), json::Value("org/name"));
  EXPECT_EQ(*end.get("max_tokens"), json::Value(9));
  EXPECT_EQ(*end.get("usage")->get("total_tokens"), json::Value(14));
}

TEST(ChatFrames, a_failure_ends_its_turn) {
  const auto turn = std::make_shared<Turn>();
  turn->number = 1;
  const std::string lines = turn_writer(turn)->failure(problem_of(Error(ErrorKind::busy, "full")), "r");
  EXPECT_EQ(lines.find('\n'), lines.size() - 1);
  const json::Value error = json::parse(lines, "error");
  EXPECT_EQ(*error.get("kind"), json::Value("busy"));
  EXPECT_EQ(*error.get("sentence"), json::Value("full"));
  EXPECT_EQ(*error.get("retry"), json::Value(1));
  EXPECT_EQ(*error.get("turn"), json::Value(1));
  EXPECT_EQ(error.get("id"), nullptr);
  EXPECT_EQ(turn->answer.reason, "error");
}

}  // namespace
}  // namespace hearth::server::frames::test
