// Answers as models of each family write them, and what they say.
#pragma once
#include <string>
#include <vector>

#include "support/joined_answer.h"

namespace hearth::text {

inline std::vector<ToolSpec> sample_tools() {
  const auto schema = [](const char* properties) {
    return json::parse(std::string(R"({"type": "object", "properties": )") + properties + "}", "schema");
  };
  return {
      {"get_weather", "Weather of a city.",
       schema(R"({"city": {"type": "string"}, "days": {"type": "integer"}, "detailed": {"type": "boolean"},
                  "at": {"type": "array", "items": {"type": "string"}}})")},
      {"write_file", "Writes a file.", schema(R"({"path": {"type": "string"}, "content": {"type": "string"}})")},
      {"search", "Finds things.",
       schema(R"({"query": {"type": "string"}, "filter": {"type": "object"}, "limit": {"type": "number"},
                  "zip": {"type": "string"}, "note": {"type": ["string", "null"]}})")},
      {"now", "The time.", {}},
  };
}

inline AnswerOptions sample_options(ToolDialect dialect, bool stream_calls = true) {
  AnswerOptions options;
  options.dialect = dialect;
  options.tools = sample_tools();
  options.stream_calls = stream_calls;
  return options;
}

struct Sample {
  ToolDialect dialect;
  std::string answer;
  std::string text;
  std::vector<test::JoinedCall> calls;
};

inline const std::vector<Sample>& samples() {
  using enum ToolDialect;
  static const std::vector<Sample> kSamples = {
      // Hermes and Qwen
      {hermes,
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 3}}\n</tool_call>",
       "",
       {{"get_weather", R"({"city": "Paris", "days": 3})", true}}},
      {hermes,
       "Let me look.\n<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Z\\u00fcrich\"}}\n</tool_call>\n"
       "<tool_call>\n{\"arguments\": {\"query\": \"a \\\"b\\\" \\\\ c\", \"filter\": {\"x\": [1, 2.50, -1e3, {}]}}, "
       "\"name\": \"search\"}\n</tool_call>\n",
       "Let me look.",
       {{"get_weather", R"({"city": "Zürich"})", true},
        {"search", R"({"query": "a \"b\" \\ c", "filter": {"x": [1, 2.50, -1e3, {}]}})", true}}},
      {hermes, "<tool_call>{\"name\": \"now\"}</tool_call>", "", {{"now", "{}", true}}},
      {hermes, "<tool_call>{\"name\": \"now\", \"arguments\": null, \"id\": 7}</tool_call>", "", {{"now", "{}", true}}},
      {hermes,
       "<tool_call>[{\"name\": \"now\"}, {\"name\": \"now\", \"arguments\": {}}]</tool_call>",
       "",
       {{"now", "{}", true}, {"now", "{}", true}}},
      {hermes,
       "<tool_call>{\"name\": \"search\", \"arguments\": {\"query\": \"</tool_call> \\ud83d\\ude00 "
       "\\ud83d!\"}}</tool_call> ok",
       "ok",
       {{"search",
         R"({"query": "</tool_call> 😀 )"
         "\xef\xbf\xbd"
         R"(!"})",
         true}}},
      {generic,
       "Yes.\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n\nDone.",
       "Yes.\n\nDone.",
       {{"now", "{}", true}}},
      // Qwen3-Coder, Qwen3.5
      {qwen3_coder,
       "<tool_call>\n<function=get_weather>\n<parameter=city>\n75001\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
       "<parameter=detailed>\nTrue\n</parameter>\n<parameter=at>\n['8:00', None, "
       "\"x\"]\n</parameter>\n</function>\n</tool_call>",
       "",
       {{"get_weather", R"({"city": "75001", "days": 3, "detailed": true, "at": ["8:00", null, "x"]})", true}}},
      {qwen3_coder,
       "I write "
       "it.\n\n<tool_call>\n<function=write_file>\n<parameter=path>\na/b.html\n</parameter>\n<parameter=content>\n"
       "<p>\n  \"x\" \\ {{y}}\t</parameter> "
       "</p>\n\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n"
       "</function>\n</tool_call>",
       "I write it.",
       {{"write_file", R"({"path": "a/b.html", "content": "<p>\n  \"x\" \\ {{y}}\t</parameter> </p>\n"})", true},
        {"now", "{}", true}}},
      {qwen3_coder,
       "<tool_call><function=search><parameter=query>a</parameter><parameter=limit>1.5</parameter></function></"
       "tool_call>",
       "",
       {{"search", R"({"query": "a", "limit": 1.5})", true}}},
      {qwen3_coder, "<function=now>\n</function>\n</tool_call>", "", {{"now", "{}", true}}},
      {qwen3_coder,
       "<tool_call>\n<function=now></function>\n<function=now></function></tool_call>",
       "",
       {{"now", "{}", true}, {"now", "{}", true}}},
      {qwen3_coder,
       "<tool_call><function=search><parameter=limit>soon</parameter><parameter=note>null</"
       "parameter><parameter=zip>null"
       "</parameter><parameter=other>{\"a\":1}</parameter><parameter=more>{a}</parameter><parameter=query>\n</"
       "parameter>"
       "</function></tool_call>",
       "",
       {{"search", R"({"limit": "soon", "note": null, "zip": "null", "other": {"a": 1}, "more": "{a}", "query": ""})",
         true}}},
      // MiniCPM5
      {minicpm5,
       R"(<function name="get_weather"><param name="city">Beijing</param><param name="days">2</param></function>)",
       "",
       {{"get_weather", R"({"city": "Beijing", "days": 2})", true}}},
      {minicpm5,
       "Two files.\n<function name=\"write_file\"><param name=\"path\">a &lt; b &amp;&#65;&#x42; &c; "
       "&amp</param><param "
       "name=\"content\"><![CDATA[if (a < b && c[d[0]]>1) {\n  return \"</param>\";\n}\n]]></param></function>\n"
       "<function name='now'/>",
       "Two files.",
       {{"write_file",
         R"({"path": "a < b &AB &c; &amp", "content": "if (a < b && c[d[0]]>1) {\n  return \"</param>\";\n}\n"})",
         true},
        {"now", "{}", true}}},
      {minicpm5,
       "<function name=\"search\">\n  <param name=\"query\">\n<![CDATA[a]]]]><![CDATA[>b]]>\n</param>\n  <param "
       "name=\"filter\">"
       "{'k': True, \"l\": None}</param>\n  <param name=\"zip\"> 007 </param><param name=\"note\"/>\n</function>",
       "",
       {{"search", R"({"query": "a]]>b", "filter": {"k": true, "l": null}, "zip": " 007 ", "note": ""})", true}}},
      // Gemma 4
      {gemma4,
       "<|tool_call>call:get_weather{city:<|\"|>Paris, \"13\"e\n<|\"|>,days:42,detailed:false}<tool_call|>",
       "",
       {{"get_weather", R"({"city": "Paris, \"13\"e\n", "days": 42, "detailed": false})", true}}},
      {gemma4,
       "Sure.<|tool_call>call:search{filter:{a:[<|\"|>}<|\"|>,{b:null}],<|\"|>c d<|\"|>:\"\\u00e9\"},zip:01234,"
       "query:weather in Rome,limit:-0.5}<tool_call|><|tool_call>call:now{}<tool_call|>",
       "Sure.",
       {{"search",
         R"({"filter": {"a": ["}", {"b": null}], "c d": "é"}, "zip": "01234", "query": "weather in Rome", "limit": -0.5})",
         true},
        {"now", "{}", true}}},
      // Llama 3
      {llama3,
       R"({"name": "get_weather", "parameters": {"city": "Oslo"}})",
       "",
       {{"get_weather", R"({"city": "Oslo"})", true}}},
      {llama3,
       R"(<|python_tag|>{"type": "function", "name": "now", "parameters": {}}; {"name": "now"})",
       "",
       {{"now", "{}", true}, {"now", "{}", true}}},
      {llama3, R"({"answer": {"name": "now"}})", R"({"answer": {"name": "now"}})", {}},
      {llama3, R"(It is {"name": "now"}.)", R"(It is {"name": "now"}.)", {}},
      {llama3, "<|python_tag|>print(1)", "<|python_tag|>print(1)", {}},
      // Mistral
      {mistral,
       R"([TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Nice"}, "id": "abcdefghi"}, {"name": "now"}])",
       "",
       {{"get_weather", R"({"city": "Nice"})", true}, {"now", "{}", true}}},
      {mistral_args,
       R"(Well. [TOOL_CALLS]get_weather[ARGS]{"city": "Nice"}[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS] {})",
       "Well.",
       {{"get_weather", R"({"city": "Nice"})", true}, {"now", "{}", true}}},
      {mistral_args, R"([TOOL_CALLS]now{})", "", {{"now", "{}", true}}},
  };
  return kSamples;
}

}  // namespace hearth::text
