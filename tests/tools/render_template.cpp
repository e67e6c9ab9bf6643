// tool_render_template: the template engine behind a command line, for the oracle tests in Python.
//   stdin   JSON lines: {"template": source, "variables": {...}} renders the bare engine;
//           {"template": source, "chat": {messages, tools, documents, add_generation_prompt, bos_token, eos_token,
//           extra}} renders as ChatTemplate does. "now": [year, month, day, hour, minute, second, weekday from Monday
//           0, yearday]
//   stdout  JSON lines: {"ok": true, "text": ..., "generation": [[begin, end], ...], "quoted": [...]} or
//           {"ok": false, "error": ...}
#include <cstdio>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace {

using namespace hearth;

std::optional<std::tm> time_of(const json::Value& line) {
  const json::Value* now = line.get("now");
  if (!now) return std::nullopt;
  const json::Array& a = now->as_array("now");
  if (a.size() != 8) fail(ErrorKind::invalid_argument, "now: {} numbers, 8 are needed", a.size());
  const auto at = [&](size_t i) { return static_cast<int>(a[i].as_int("now")); };
  std::tm t{};
  t.tm_year = at(0) - 1900;
  t.tm_mon = at(1) - 1;
  t.tm_mday = at(2);
  t.tm_hour = at(3);
  t.tm_min = at(4);
  t.tm_sec = at(5);
  t.tm_wday = (at(6) + 1) % 7;
  t.tm_yday = at(7) - 1;
  return t;
}

text::jinja::Rendered render(const json::Value& line) {
  const std::string& source = line.as_object("line").find("template")->as_string("template");
  // Tests compare texts, on machines under any load; the clock has its own test.
  const text::jinja::RenderLimits limits{.now_ms = [] { return int64_t{0}; }};
  if (const json::Value* variables = line.get("variables")) {
    text::jinja::RenderInput input;
    input.now = time_of(line);
    for (const auto& [name, value] : variables->as_object("variables")) input.variables.emplace_back(name, &value);
    return text::jinja::Template(source, "test").render(input, limits);
  }
  const json::Object& chat = line.as_object("line").find("chat")->as_object("chat");
  text::ChatInput input;
  input.now = time_of(line);
  for (const auto& [name, value] : chat) {
    if (name == "messages") input.messages = value;
    else if (name == "tools") input.tools = value;
    else if (name == "documents") input.documents = value;
    else if (name == "add_generation_prompt") input.add_generation_prompt = value.as_bool(name);
    else if (name == "bos_token") input.bos_token = value.as_string(name);
    else if (name == "eos_token") input.eos_token = value.as_string(name);
    else if (name == "extra") input.extra = value.as_object(name);
    else fail(ErrorKind::invalid_argument, "unknown member {}", name);
  }
  return text::ChatTemplate(source, "test").render_marked(input, limits);
}

json::Array pairs(const std::vector<text::ByteRange>& ranges) {
  json::Array list;
  for (const auto& [begin, end] : ranges)
    list.push_back(json::Array{static_cast<int64_t>(begin), static_cast<int64_t>(end)});
  return list;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    json::Object answer;
    try {
      const auto rendered = render(json::parse(line, "stdin"));
      answer["ok"] = true;
      answer["text"] = rendered.text;
      answer["generation"] = pairs(rendered.generation);
      answer["quoted"] = pairs(rendered.quoted);
    } catch (const Error& e) {
      answer["ok"] = false;
      answer["error"] = std::string(e.what());
    }
    const std::string out = json::dump(answer) + "\n";
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  return 0;
}
