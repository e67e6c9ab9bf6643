// R-05: when the n-th allocation of a request's way fails, for n = 1 until none is left to fail, what comes is
// bad_alloc and nothing else, nothing leaks (under ASan), and the same input is read as ever behind it. With the four
// parsers of tests/formats/allocation_test.cpp these are the entry points of the promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "decode/kv_file_bytes.h"
#include "net/request_head.h"
#include "server/dialects/anthropic.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/openai_completions.h"
#include "server/dialects/responses.h"
#include "server/wire.h"
#include "support/allocation_hook.h"
#include "support/outcome.h"
#include "text/chat_template.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer.h"
#include "text/tokenizer_tables.h"
#include "text/tools/answer_parser.h"

namespace hearth::server {
namespace {

constexpr const char* kTool =
    R"({"type": "function", "function": {"name": "get_weather_of_a_city_far_away", "parameters":
    {"type": "object", "properties": {"city_by_its_full_name": {"type": "string", "maxLength": 40},
     "days": {"type": "array", "items": {"type": "integer", "minimum": -3}}}, "required": ["days"]}}})";

std::string chat_body() {
  return std::string(R"({"messages": [{"role": "system", "content": "You are a helper of very few words, as they say."},
      {"role": "user", "content": [{"type": "text", "text": "What is the weather in Paris, and for how long will it stay so?"}]}],
      "temperature": 0.5, "logit_bias": {"17": 1.5, "12345": -3}, "stop": ["a stop string that is long enough", "b"],
      "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {}}}},
      "tools": [)") +
         kTool + "]}";
}

struct EntryPoint {
  const char* name;
  std::function<void()> read;
};

std::vector<EntryPoint> entry_points() {
  static const std::string chat = chat_body();
  static const json::Value body = json::parse(chat, "body");
  static const std::string frame = [] {
    std::string bytes;
    append_frame(bytes, {FrameKind::submit, json::parse(chat_body(), "body")});
    return bytes;
  }();
  static const test::KvFileBytes stored(graph::KvFormat::q4, 50, 130);
  static const json::Value schema = *json::parse(kTool, "tool").get("function")->get("parameters");
  static const text::Tokenizer tokenizer(
      text::parse_tokenizer_json(text::byte_level_json({{"a", "b"}, {"ab", "c"}}), "tokenizer.json"));
  return {
      {"HTTP head",
       [] {
         const auto head = net::parse_head(
             "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: localhost:8080\r\n"
             "X-A-Header-Of-Many-Letters: with a value of many letters\r\n"
             "Content-Length: 12\r\n\r\n",
             {});
         if (!std::holds_alternative<net::ParsedHead>(head)) fail(ErrorKind::io, "it was refused");
       }},
      {"JSON", [] { json::parse(chat, "body"); }},
      {"chat completions", [] { openai::parse_chat(*body.object()); }},
      {"completions",
       [] {
         openai::parse_completion(
             *json::parse(R"({"prompt": "a prompt that is long enough for the heap", "guided_choice": ["a", "b"]})",
                          "b")
                  .object());
       }},
      {"messages",
       [] {
         anthropic::parse_messages(
             *json::parse(
                  R"({"max_tokens": 5, "system": "a system line that is long enough", "messages": [{"role": "user",
                 "content": [{"type": "text", "text": "a text that is long enough for the heap"}]}]})",
                  "b")
                  .object());
       }},
      {"responses",
       [] {
         responses::parse_responses(
             *json::parse(R"({"input": [{"role": "user", "content": "a text that is long enough for the heap"}]})", "b")
                  .object());
       }},
      {"wire",
       [] {
         size_t at = 0;
         take_frame(frame, at);
       }},
      {"generation", [] { generation_of(to_json(openai::parse_chat(*body.object()).generation)); }},
      {"chat template",
       [] {
         const text::ChatTemplate t(
             "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{% endfor %}"
             "{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}",
             "a template");
         text::ChatInput input;
         input.messages = json::parse(R"([{"role": "user", "content": " What is it about, and for how long? "}])", "m");
         input.tools = json::Array{json::parse(kTool, "tool")};
         t.render_marked(input);
       }},
      {"tokenizer file",
       [] { text::parse_tokenizer_json(text::byte_level_json({{"a", "b"}, {"ab", "c"}}), "tokenizer.json"); }},
      {"tokenizer", [] { tokenizer.encode("abc abc, and some more that is long enough \xf0\x9f\x98\x80", {}); }},
      {"JSON schema", [] { text::compile_json_schema(schema, {}); }},
      {"EBNF", [] { text::compile_ebnf("root ::= \"a\" item{2,4} | [a-z]+\nitem ::= \"(\" root \")\" | \"b\""); }},
      {"regex", [] { text::compile_regex("(foo|ba[rz]){2,5}[^a-f\\d]*"); }},
      {"answer",
       [] {
         text::AnswerOptions options;
         options.reasoning = text::ReasoningMarkers{"<think>", "</think>"};
         options.dialect = text::ToolDialect::hermes;
         options.tools = {{.name = "now_in_a_city_far_away", .description = "", .parameters = {}}};
         text::AnswerParser parser(options, Random(1));
         parser.push(
             "<think>Well, what is it about?</think>Let me look at it.\n<tool_call>\n{\"name\": "
             "\"now_in_a_city_far_away\", \"arguments\": {\"city\": \"a name that is long enough\"}}");
         parser.finish(false);
       }},
      {"stored prefix", [] { test::read_kv_file(stored.bytes, stored.groups); }},
  };
}

// The first ones all, of the others so many that they are about at_most.
void check_every_allocation(const EntryPoint& entry, size_t at_most) {
  size_t all = 0;
  entry.read();  // what is made once in a process is no part of it
  {
    const test::AllocationWatch watch;
    entry.read();
    all = watch.so_far().count;
  }
  ASSERT_GT(all, 2u) << entry.name;
  const size_t step = std::max<size_t>(1, all / at_most);
  size_t failed = 0;
  for (size_t nth = 1; nth <= all; nth += nth < 64 ? 1 : step) {
    std::string outcome = "accepted";
    {
      const test::AllocationWatch watch(nth);
      try {
        entry.read();
      } catch (const std::bad_alloc&) {
        ++failed;
        continue;
      } catch (const Error& error) {
        outcome = error.what();
      }
    }
    // Only what needs no memory to go on may have gone on.
    EXPECT_EQ(outcome, "accepted") << entry.name << ", allocation " << nth << " of " << all;
  }
  EXPECT_GT(failed, 2u) << entry.name;
  EXPECT_EQ(test::outcome(entry.read), "accepted") << entry.name << " afterwards";
}

TEST(RequestAllocation, any_may_fail) {
  const std::vector<EntryPoint> entries = entry_points();
  EXPECT_GE(entries.size(), 12u);
  for (const EntryPoint& entry : entries) check_every_allocation(entry, 300);
}

TEST(RequestAllocationFull, every_one_may_fail) {
  for (const EntryPoint& entry : entry_points()) check_every_allocation(entry, SIZE_MAX);
}

}  // namespace
}  // namespace hearth::server
