#include "server/dialects/responses.h"

#include <gtest/gtest.h>

#include "server/dialect_events.h"

namespace hearth::server::responses {
namespace {

const AnswerHead kHead = {.request_id = "req_1", .model = "m", .created = 7};

ResponsesRequest parsed(const std::string& text, Past past = {}) {
  ResponsesRequest request = parse_responses(*json::parse(text, "a body").object());
  converse(request, std::move(past));
  return request;
}

std::unique_ptr<AnswerWriter> writer() { return responses_writer(parsed(R"({"input": "Hi"})")); }

// Ids are random; what two answers share besides is compared.
json::Value without_ids(const json::Value& value) {
  if (const json::Array* list = value.array()) {
    json::Array out;
    for (const json::Value& item : *list) out.push_back(without_ids(item));
    return out;
  }
  if (!value.object()) return value;
  json::Object out;
  for (const auto& [key, member] : *value.object())
    if (key != "id") out[key] = without_ids(member);
  return out;
}

// What a client puts together: items as they are added, deltas, and what is done; all three must agree.
struct Joined {
  json::Value response;
  std::string last;
};
Joined joined(const std::string& bytes) {
  Joined all;
  struct Item {
    std::string id, type, text;
    json::Value done;
  };
  std::vector<Item> items;
  int64_t sequence = 0;
  for (const auto& [name, data] : read_stream(bytes)) {
    EXPECT_EQ(*at(data, "type").string(), name);
    EXPECT_EQ(at(data, "sequence_number").as_int("sequence_number"), sequence++);
    all.last = name;
    if (const json::Value* response = data.get("response")) {
      all.response = *response;
      continue;
    }
    const auto index = static_cast<size_t>(at(data, "output_index").as_int("output_index"));
    if (name == "response.output_item.added") {
      EXPECT_EQ(index, items.size());
      EXPECT_EQ(*at(at(data, "item"), "status").string(), "in_progress");
      items.push_back({*at(at(data, "item"), "id").string(), *at(at(data, "item"), "type").string(), "", {}});
      continue;
    }
    if (index + 1 != items.size()) {
      ADD_FAILURE() << name << " of an item that is not the last one";
      break;
    }
    Item& item = items[index];
    if (name == "response.output_item.done") {
      item.done = at(data, "item");
      EXPECT_EQ(*at(item.done, "id").string(), item.id);
      continue;
    }
    EXPECT_EQ(*at(data, "item_id").string(), item.id);
    if (const json::Value* delta = data.get("delta")) item.text += *delta->string();
    for (const char* key : {"text", "arguments", "input"}) {
      if (const json::Value* whole = data.get(key)) {
        EXPECT_EQ(*whole->string(), item.text);
      }
    }
    if (name == "response.content_part.done") {
      EXPECT_EQ(*at(at(data, "part"), "text").string(), item.text);
    }
  }
  json::Array listed;
  for (const Item& item : items)
    if (!item.type.ends_with("_call") || *at(item.done, "status").string() == "completed") listed.push_back(item.done);
  EXPECT_EQ(json::dump(at(all.response, "output")), json::dump(json::Value(listed)));
  return all;
}

TEST(ResponsesWriter, a_stream_joins_to_the_document) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::vector<Event> events = random_events(random);
    const Joined stream = joined(stream_of(*writer(), kHead, events));
    const json::Value document = writer()->document(kHead, {collected(events)});
    EXPECT_EQ(json::dump(without_ids(stream.response)), json::dump(without_ids(document))) << "seed " << seed;
    EXPECT_EQ(stream.last, "response." + *at(document, "status").string());
  }
}

TEST(ResponsesWriter, the_stored_document_has_the_ids_of_the_stream) {
  Random random(3);
  const std::vector<Event> events = random_events(random);
  const auto one = writer();
  const Joined stream = joined(stream_of(*one, kHead, events));
  EXPECT_EQ(json::dump(one->document(kHead, {collected(events)})), json::dump(stream.response));
}

TEST(ResponsesWriter, items_of_every_kind) {
  std::vector<Event> events = {event_of(Event::Kind::reasoning, "Hmm."), event_of(Event::Kind::text, "Look.")};
  add_call(events, 0, "find", R"({"q":1})", 3);
  events.push_back(finish_of("tool_calls"));
  const json::Value document = writer()->document(kHead, {collected(events)});
  EXPECT_EQ(
      json::dump(without_ids(at(document, "output"))),
      text_of(
          R"([{"type":"reasoning","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"Hmm."}]},)"
          R"({"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Look.",)"
          R"("annotations":[],"logprobs":[]}]},{"type":"function_call","status":"completed",)"
          R"("call_id":"call_abcdefghijklmnopqrstuvw0","name":"find","arguments":"{\"q\":1}"}])"));
  EXPECT_EQ(*at(document, "status").string(), "completed");
  EXPECT_EQ(
      json::dump(at(document, "usage")),
      text_of(
          R"({"input_tokens":40,"input_tokens_details":{"cached_tokens":32,"cache_write_tokens":0},"output_tokens":9,)"
          R"("output_tokens_details":{"reasoning_tokens":3},"total_tokens":49})"));
}

TEST(ResponsesWriter, a_cut_answer_is_incomplete_and_a_cut_call_is_none) {
  std::vector<Event> events = {event_of(Event::Kind::text, "Wait")};
  add_call(events, 0, "find", R"({"q":)", 3, false);
  events.push_back(finish_of("length"));
  const Joined stream = joined(stream_of(*writer(), kHead, events));
  EXPECT_EQ(stream.last, "response.incomplete");
  EXPECT_EQ(*at(at(stream.response, "incomplete_details"), "reason").string(), "max_output_tokens");
  EXPECT_EQ(at(stream.response, "output").array()->size(), 1u);
  EXPECT_EQ(json::dump(without_ids(stream.response)),
            json::dump(without_ids(writer()->document(kHead, {collected(events)}))));
}

TEST(ResponsesWriter, a_call_of_a_custom_tool_is_its_text) {
  const ResponsesRequest request = parsed(R"({"input": "A", "tools": [{"type": "custom", "name": "patch"},
    {"type": "function", "name": "find", "parameters": {"type": "object"}}]})");
  std::vector<Event> events;
  add_call(events, 0, "patch", R"({"input": "*** a\n\"b\""})", 3);
  add_call(events, 1, "find", R"({"q":1})", 2);
  events.push_back(finish_of("tool_calls"));
  const std::string bytes = stream_of(*responses_writer(request), kHead, events);
  const Joined stream = joined(bytes);
  const json::Array& output = *at(stream.response, "output").array();
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(json::dump(without_ids(output[0])),
            text_of(R"({"type":"custom_tool_call","status":"completed","call_id":"call_abcdefghijklmnopqrstuvw0",)"
                    R"("name":"patch","input":"*** a\n\"b\""})"));
  EXPECT_EQ(*at(output[1], "type").string(), "function_call");
  std::vector<std::string> names;
  for (const auto& event : read_stream(bytes))
    if (event.data.get("output_index") && event.data.get("output_index")->as_int("output_index") == 0)
      names.push_back(event.name);
  EXPECT_EQ(names, (std::vector<std::string>{"response.output_item.added", "response.custom_tool_call_input.delta",
                                             "response.custom_tool_call_input.done", "response.output_item.done"}));
  EXPECT_EQ(json::dump(without_ids(at(responses_writer(request)->document(kHead, {collected(events)}), "output"))),
            json::dump(without_ids(at(stream.response, "output"))));
}

TEST(ResponsesWriter, a_call_of_a_tool_in_a_namespace_has_both_names) {
  const ResponsesRequest request = parsed(R"({"input": [
    {"role": "user", "content": "A"},
    {"type": "function_call", "call_id": "c1", "namespace": "files", "name": "find", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "none"}],
    "tools": [{"type": "namespace", "name": "files", "description": "d", "tools": [
      {"type": "function", "name": "find", "parameters": {"type": "object"}}, {"type": "custom", "name": "patch"}]},
      {"type": "function", "name": "find", "parameters": {"type": "object"}}]})");
  const json::Array& shown = *request.generation.tools.array();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(*at(at(shown[0], "function"), "name").string(), "files.find");
  EXPECT_EQ(*at(at(shown[2], "function"), "name").string(), "find");
  const json::Value& past = (*request.generation.messages.array())[1];
  EXPECT_EQ(*at(at((*at(past, "tool_calls").array())[0], "function"), "name").string(), "files.find");
  std::vector<Event> events;
  add_call(events, 0, "files.find", "{}", 1);
  add_call(events, 1, "find", "{}", 1);
  add_call(events, 2, "files.patch", R"({"input": "x"})", 1);
  events.push_back(finish_of("tool_calls"));
  const Joined stream = joined(stream_of(*responses_writer(request), kHead, events));
  EXPECT_EQ(json::dump(without_ids(at(stream.response, "output"))),
            text_of(R"([{"type":"function_call","status":"completed","call_id":"call_abcdefghijklmnopqrstuvw0",)"
                    R"("namespace":"files","name":"find","arguments":"{}"},)"
                    R"({"type":"function_call","status":"completed","call_id":"call_abcdefghijklmnopqrstuvw1",)"
                    R"("name":"find","arguments":"{}"},)"
                    R"({"type":"custom_tool_call","status":"completed","call_id":"call_abcdefghijklmnopqrstuvw2",)"
                    R"("namespace":"files","name":"patch","input":"x"}])"));
}

TEST(ResponsesWriter, a_cut_call_of_a_custom_tool_is_none) {
  const ResponsesRequest request = parsed(R"({"input": "A", "tools": [{"type": "custom", "name": "patch"}]})");
  std::vector<Event> events;
  add_call(events, 0, "patch", R"({"input": "*** )", 3, false);
  events.push_back(finish_of("length"));
  const Joined stream = joined(stream_of(*responses_writer(request), kHead, events));
  EXPECT_EQ(stream.last, "response.incomplete");
  EXPECT_EQ(at(stream.response, "output").array()->size(), 0u);
}

TEST(ResponsesWriter, silence_is_broken_by_an_event) {
  EXPECT_EQ(writer()->ping(), "event: keepalive\ndata: {\"type\": \"keepalive\", \"sequence_number\": 1}\n\n");
}

TEST(ResponsesWriter, a_failure_is_the_last_event) {
  const auto one = writer();
  std::string bytes = one->begin(kHead, {});
  bytes += one->event(event_of(Event::Kind::text, "Be"));
  const Problem problem = {
      .status = 503, .type = "server_error", .message = "gone", .param = {}, .code = "worker_lost"};
  bytes += one->failure(problem, "req_1");
  const auto events = read_stream(bytes);
  EXPECT_EQ(events.back().name, "response.failed");
  const json::Value& told = events[events.size() - 2].data;
  EXPECT_EQ(events[events.size() - 2].name, "error");
  for (const json::Value* error : {&told, told.get("error")}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(*at(*error, "code").string(), "worker_lost");
    EXPECT_EQ(*at(*error, "message").string(), "gone");
    EXPECT_TRUE(at(*error, "param").is_null());
  }
  const json::Value& response = at(events.back().data, "response");
  EXPECT_EQ(*at(response, "status").string(), "failed");
  EXPECT_EQ(json::dump(at(response, "error")), text_of(R"({"code":"worker_lost","message":"gone"})"));
}

TEST(ResponsesParse, items_become_messages) {
  const ResponsesRequest request = parsed(R"({"instructions": "Be brief.", "input": [
    {"role": "developer", "content": "D"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A"}]},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "T"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "B"}]},
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{\"q\":1}"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]}]})");
  EXPECT_EQ(
      json::dump(request.generation.messages),
      text_of(
          R"([{"role":"system","content":"Be brief."},{"role":"system","content":"D"},{"role":"user","content":"A"},)"
          R"({"role":"assistant","content":"B","reasoning_content":"T","tool_calls":[{"id":"c1","type":"function",)"
          R"("function":{"name":"find","arguments":"{\"q\":1}"}},{"id":"c2","type":"function","function":)"
          R"({"name":"patch","arguments":"{\"input\": \"x\"}"}}]},)"
          R"({"role":"tool","tool_call_id":"c1","name":"find","content":"found"},)"
          R"({"role":"tool","tool_call_id":"c2","name":"patch","content":"done"}])"));
}

TEST(ResponsesParse, what_went_before_stands_in_front) {
  Past past;
  past.items = *json::parse(R"([{"type": "message", "role": "user", "content": "A"},
    {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "B"}]}])",
                            "")
                    .array();
  past.instructions = "I";
  const char* kBody = R"({"input": "C", "previous_response_id": "resp_1"})";
  EXPECT_EQ(
      json::dump(parsed(kBody, past).generation.messages),
      text_of(R"([{"role":"system","content":"I"},{"role":"user","content":"A"},{"role":"assistant","content":"B"},)"
              R"({"role":"user","content":"C"}])"));
  const ResponsesRequest other =
      parsed(R"({"input": "C", "previous_response_id": "resp_1", "instructions": "J"})", past);
  EXPECT_EQ(*other.instructions, "J");
  EXPECT_EQ(*at((*other.generation.messages.array())[0], "content").string(), "J");
}

TEST(ResponsesParse, tools_are_flat) {
  const ResponsesRequest request = parsed(R"({"input": "A", "tools": [{"type": "web_search"},
    {"type": "function", "name": "find", "description": "d", "parameters": {"type": "object"}, "strict": true},
    {"type": "custom", "name": "patch"}], "tool_choice": {"type": "function", "name": "find"},
    "reasoning": {"effort": "none"}, "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}})");
  const Generation& g = request.generation;
  EXPECT_EQ(
      json::dump(g.tools),
      text_of(
          R"([{"type":"function","function":{"name":"find","description":"d","parameters":{"type":"object"},"strict":true}},)"
          R"({"type":"function","function":{"name":"patch","parameters":{"type":"object","properties":{"input":)"
          R"({"type":"string"}},"required":["input"],"additionalProperties":false}}}])"));
  EXPECT_EQ(json::dump(g.tool_choice), text_of(R"({"name":"find"})"));
  EXPECT_EQ(g.thinking, false);
  EXPECT_EQ(json::dump(g.format), text_of(R"({"kind":"json_schema","value":{"type":"object"}})"));
  const ResponsesRequest some = parsed(R"({"input": "A", "tools": [{"type": "function", "name": "a"},
    {"type": "function", "name": "b"}], "tool_choice": {"type": "allowed_tools", "mode": "required",
    "tools": [{"type": "function", "name": "b"}]}})");
  EXPECT_EQ(json::dump(some.generation.tools), text_of(R"([{"type":"function","function":{"name":"b"}}])"));
  EXPECT_EQ(*some.generation.tool_choice.string(), "required");
}

}  // namespace
}  // namespace hearth::server::responses
