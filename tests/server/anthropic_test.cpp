#include "server/dialects/anthropic.h"

#include <gtest/gtest.h>

#include "server/dialect_events.h"

namespace hearth::server::anthropic {
namespace {

const AnswerHead kHead = {.request_id = "req_1", .model = "m", .created = 7};

json::Object body_of(const char* text) { return *json::parse(text, "a body").object(); }

// The message that a client puts together from a stream, as Anthropic's libraries do.
json::Value joined(const std::string& bytes) {
  json::Object message;
  json::Array content;
  std::string partial;
  int64_t open = -1;
  std::string last;
  for (const auto& [name, data] : read_stream(bytes)) {
    EXPECT_EQ(*at(data, "type").string(), name);
    last = name;
    if (name == "message_start") message = *at(data, "message").object();
    if (name == "content_block_start") {
      EXPECT_EQ(open, -1) << "a block inside of a block";
      open = at(data, "index").as_int("index");
      EXPECT_EQ(open, static_cast<int64_t>(content.size()));
      content.push_back(at(data, "content_block"));
      partial.clear();
    }
    if (name == "content_block_delta") {
      EXPECT_EQ(at(data, "index").as_int("index"), open);
      json::Object& block = *content[content.size() - 1].object();
      const json::Value& delta = at(data, "delta");
      const std::string& type = *at(delta, "type").string();
      if (type == "input_json_delta") partial += *at(delta, "partial_json").string();
      for (const char* key : {"text", "thinking"})
        if (type == std::string(key) + "_delta") block[key] = *block[key].string() + *at(delta, key).string();
    }
    if (name == "content_block_stop") {
      EXPECT_EQ(at(data, "index").as_int("index"), open);
      open = -1;
      if (!partial.empty()) (*content[content.size() - 1].object())["input"] = json::parse(partial, "input");
    }
    if (name == "message_delta") {
      for (const auto& [key, value] : *at(data, "delta").object()) message[key] = value;
      message["usage"] = at(data, "usage");
    }
  }
  EXPECT_EQ(open, -1);
  EXPECT_EQ(last, "message_stop");
  message["content"] = std::move(content);
  return message;
}

TEST(AnthropicWriter, a_stream_joins_to_the_document) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::vector<Event> events = random_events(random);
    const auto writer = messages_writer();
    const json::Value document = writer->document(kHead, {collected(events)});
    EXPECT_EQ(json::dump(joined(stream_of(*writer, kHead, events))), json::dump(document)) << "seed " << seed;
  }
}

TEST(AnthropicWriter, thinking_text_and_calls_are_blocks_in_order) {
  std::vector<Event> events = {event_of(Event::Kind::reasoning, "Hm"), event_of(Event::Kind::reasoning, "m."),
                               event_of(Event::Kind::text, "Let me look.")};
  add_call(events, 0, "find", R"({"q":"x"})", 4);
  add_call(events, 1, "ls", "{}", 4);
  events.push_back(finish_of("tool_calls"));
  const json::Value document = messages_writer()->document(kHead, {collected(events)});
  EXPECT_EQ(json::dump(at(document, "content")),
            text_of(R"([{"type":"thinking","thinking":"Hmm.","signature":""},{"type":"text","text":"Let me look."},)"
                    R"({"type":"tool_use","id":"toolu_abcdefghijklmnopqrstuvw0","name":"find","input":{"q":"x"}},)"
                    R"({"type":"tool_use","id":"toolu_abcdefghijklmnopqrstuvw1","name":"ls","input":{}}])"));
  EXPECT_EQ(*at(document, "stop_reason").string(), "tool_use");
  EXPECT_EQ(
      json::dump(at(document, "usage")),
      text_of(R"({"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":32,"output_tokens":9,)"
              R"("output_tokens_details":{"thinking_tokens":3}})"));
}

TEST(AnthropicWriter, a_call_that_was_cut_is_no_call) {
  std::vector<Event> events = {event_of(Event::Kind::text, "Wait")};
  add_call(events, 0, "find", R"({"q":"x)", 3, false);
  events.push_back(finish_of("length"));
  const json::Value document = messages_writer()->document(kHead, {collected(events)});
  EXPECT_EQ(json::dump(at(document, "content")), text_of(R"([{"type":"text","text":"Wait"}])"));
  EXPECT_EQ(*at(document, "stop_reason").string(), "max_tokens");
  // In a stream its block had begun; it is closed, and the reason says that it was cut.
  const auto events_out = read_stream(stream_of(*messages_writer(), kHead, events));
  EXPECT_EQ(events_out[events_out.size() - 3].name, "content_block_stop");
  EXPECT_EQ(*at(at(events_out[events_out.size() - 2].data, "delta"), "stop_reason").string(), "max_tokens");
}

TEST(AnthropicWriter, reasons) {
  const auto reason = [](Event end) {
    const json::Value document = messages_writer()->document(kHead, {collected({std::move(end)})});
    return *at(document, "stop_reason").string() + " " + json::dump(at(document, "stop_sequence"));
  };
  EXPECT_EQ(reason(finish_of("stop")), "end_turn null");
  EXPECT_EQ(reason(finish_of("stop", "END")), "stop_sequence \"END\"");
  EXPECT_EQ(reason(finish_of("length")), "max_tokens null");
  EXPECT_EQ(reason(finish_of("tool_calls")), "tool_use null");
}

TEST(AnthropicWriter, failures_and_pings_are_events) {
  const auto writer = messages_writer();
  EXPECT_EQ(writer->ping(), "event: ping\ndata: {\"type\": \"ping\"}\n\n");
  const Problem problem = {
      .status = 503, .type = "server_error", .message = "gone", .param = {}, .code = "worker_lost"};
  const std::vector<Streamed> failure = read_stream(writer->failure(problem, "req_1"));
  ASSERT_EQ(failure.size(), 1u);
  EXPECT_EQ(failure[0].name, "error");
  EXPECT_EQ(json::dump(failure[0].data),
            text_of(R"({"type":"error","error":{"type":"overloaded_error","message":"gone"},"request_id":"req_1"})"));
}

Generation parsed(const std::string& fields) {
  return parse_messages(body_of(("{\"max_tokens\": 9, " + fields + "}").c_str())).generation;
}

TEST(AnthropicParse, blocks_become_messages) {
  const Generation g = parsed(R"("system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
      {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
      {"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "T", "signature": "s"},
        {"type": "text", "text": "C"}, {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"q": 1}}]},
      {"role": "user", "content": [{"type": "text", "text": "D"},
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [{"type": "text", "text": "no"}]}]}])");
  EXPECT_EQ(json::dump(g.messages),
            text_of(R"([{"role":"system","content":"Be brief."},{"role":"user","content":"A\n\nB"},)"
                    R"({"role":"assistant","content":"C","tool_calls":[{"id":"toolu_1","type":"function",)"
                    R"("function":{"name":"find","arguments":"{\"q\": 1}"}}],"reasoning_content":"T"},)"
                    R"({"role":"tool","tool_call_id":"toolu_1","name":"find","content":"Error: no"},)"
                    R"({"role":"user","content":"D"}])"));
  EXPECT_EQ(g.max_tokens, 9);
}

TEST(AnthropicParse, the_billing_line_leaves_no_trace) {
  const auto messages = [](const char* system) {
    return json::dump(
        parsed(std::string(R"("messages": [{"role": "user", "content": "A"}], "system": )") + system).messages);
  };
  EXPECT_EQ(messages(R"("x-anthropic-billing-header: a=1\nBe brief.")"), messages(R"("Be brief.")"));
  EXPECT_EQ(messages(R"("Be brief.\nx-anthropic-billing-header: a=2\nOr not.")"), messages(R"("Be brief.\nOr not.")"));
  EXPECT_EQ(messages(R"("x-anthropic-billing-header: a=1")"), messages("null"));
  EXPECT_EQ(
      messages(R"([{"type": "text", "text": "x-anthropic-billing-header: a=3"}, {"type": "text", "text": "Hi"}])"),
      messages(R"("Hi")"));
  EXPECT_NE(messages(R"("see x-anthropic-billing-header: a=1")"), messages("null"));
}

constexpr const char* kAsk = R"("messages": [{"role": "user", "content": "A"}], )";

TEST(AnthropicParse, tools_of_the_server_are_left_out) {
  const Generation g = parsed(std::string(kAsk) + R"("tools": [{"type": "web_search_20250305", "name": "web_search"},
    {"name": "find", "description": "d", "input_schema": {"type": "object"}},
    {"type": "custom", "name": "ls", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": true})");
  EXPECT_EQ(
      json::dump(g.tools),
      text_of(R"([{"type":"function","function":{"name":"find","description":"d","parameters":{"type":"object"}}},)"
              R"({"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}])"));
  EXPECT_EQ(*g.tool_choice.string(), "required");
  EXPECT_FALSE(g.parallel_tool_calls);
  const Generation none =
      parsed(std::string(kAsk) + R"("tools": [{"type": "web_search_20250305", "name": "web_search"}])");
  EXPECT_TRUE(none.tools.is_null());
  const Generation named =
      parsed(std::string(kAsk) + R"("tools": [{"name": "find", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "find"})");
  EXPECT_EQ(json::dump(named.tool_choice), text_of(R"({"name":"find"})"));
}

std::vector<std::string> names_of(const json::Value& tools) {
  std::vector<std::string> names;
  if (const json::Array* list = tools.array())
    for (const json::Value& tool : *list) names.push_back(*at(at(tool, "function"), "name").string());
  return names;
}

TEST(AnthropicParse, deferred_tools_are_shown_when_they_are_found) {
  const std::string tools = R"("tools": [{"name": "late", "defer_loading": true, "input_schema": {"type": "object"}},
    {"name": "never", "defer_loading": true, "input_schema": {"type": "object"}},
    {"name": "search", "input_schema": {"type": "object"}}])";
  EXPECT_EQ(names_of(parsed(kAsk + tools).tools), std::vector<std::string>{"search"});
  const std::string found = R"("messages": [{"role": "user", "content": "A"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
      "content": [{"type": "tool_reference", "tool_name": "late"}, {"type": "tool_reference", "tool_name": "gone"}]}]}], )";
  const Generation g = parsed(found + tools);
  EXPECT_EQ(names_of(g.tools), (std::vector<std::string>{"search", "late"}));
  EXPECT_EQ(*at((*g.messages.array())[2], "content").string(),
            "The tool late can be called now.\n\nThe tool gone can be called now.");
  const std::string by_server = R"("tools": [{"type": "tool_search_tool_regex_20251119", "name": "tool_search"},
    {"name": "late", "defer_loading": true, "input_schema": {"type": "object"}}])";
  EXPECT_EQ(names_of(parsed(kAsk + by_server).tools), std::vector<std::string>{"late"});
}

TEST(AnthropicParse, system_messages_add_and_remove_tools) {
  const std::string tools = R"(], "tools": [{"name": "late", "defer_loading": true, "input_schema": {"type": "object"}},
    {"name": "find", "input_schema": {"type": "object"}}])";
  const std::string said = R"("messages": [{"role": "user", "content": "A"})";
  const auto system = [](const std::string& blocks) { return R"(, {"role": "system", "content": [)" + blocks + "]}"; };
  const std::string by_name = R"({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}})";
  const std::string whole = R"({"type": "tool_addition", "tool": {"type": "tool_definition", "definition":
    {"name": "new", "input_schema": {"type": "object"}}}})";
  const std::string removal = R"({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "find"}})";
  const Generation added = parsed(said + system(by_name + "," + whole) + tools);
  EXPECT_EQ(names_of(added.tools), (std::vector<std::string>{"find", "late", "new"}));
  EXPECT_EQ(added.messages.array()->size(), 1u) << "a change without words says nothing";
  const std::string words = R"({"type": "text", "text": "Now."},)";
  const Generation taken = parsed(said + system(by_name) + system(words + removal) + tools);
  EXPECT_EQ(names_of(taken.tools), std::vector<std::string>{"late"});
  EXPECT_EQ(*at((*taken.messages.array())[1], "content").string(), "Now.");
  for (const char* wrong :
       {R"({"type": "tool_removal"})", R"({"type": "tool_addition", "tool": {"type": "tool_definition"}})"})
    EXPECT_THROW(parsed(said + system(wrong) + tools), RequestError) << wrong;
}

TEST(AnthropicParse, thinking_and_output) {
  const Generation on = parsed(std::string(kAsk) + R"("thinking": {"type": "enabled", "budget_tokens": 2048})");
  EXPECT_EQ(on.thinking, true);
  EXPECT_EQ(on.reasoning_budget, 2048);
  EXPECT_EQ(parsed(std::string(kAsk) + R"("thinking": {"type": "disabled"})").thinking, false);
  EXPECT_EQ(parsed(std::string(kAsk) + R"("top_k": 3)").thinking, std::nullopt);
  const Generation config = parsed(std::string(kAsk) + R"("stop_sequences": ["x"], "output_config": {"effort": "low",
    "format": {"type": "json_schema", "schema": {"type": "object"}}})");
  EXPECT_EQ(config.reasoning_effort, "low");
  EXPECT_EQ(config.thinking, std::nullopt);
  EXPECT_EQ(json::dump(config.format), text_of(R"({"kind":"json_schema","value":{"type":"object"}})"));
  EXPECT_EQ(config.stops, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace hearth::server::anthropic
