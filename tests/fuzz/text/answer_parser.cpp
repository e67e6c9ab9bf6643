// What a model may write, in every dialect: the events do not depend on how the text is cut, calls are whole and typed
// or they are none, and no text is lost. The first byte picks the dialect, the second what is asked for.
#include <cstdio>
#include <cstdlib>

#include "../../support/joined_answer.h"
#include "text/detokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  if (size < 2) return 0;
  static const json::Value kSchema = json::parse(
      R"({"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": ["string", "null"]},
          "i": {"type": "integer"}, "o": {"type": "object"}}})",
      "schema");
  text::AnswerOptions options;
  options.dialect = static_cast<text::ToolDialect>(data[0] % 8);
  options.tools = {{.name = "f", .description = "", .parameters = kSchema},
                   {.name = "g", .description = "", .parameters = {}}};
  options.stream_calls = data[1] & 1;
  options.parallel_calls = data[1] & 2;
  if (data[1] & 4) options.reasoning = text::ReasoningMarkers{"<think>", "</think>", (data[1] & 8) != 0};
  options.reasoning_open = data[1] & 16;
  if (data[1] & 32) options.tools.clear();
  options.bare_calls = !(data[1] & 128);

  text::Detokenizer detokenizer;
  std::string answer = detokenizer.push({reinterpret_cast<const char*>(data) + 2, size - 2});
  answer += detokenizer.finish();
  const std::string problem = test::check_answer(options, answer, (data[1] & 64) != 0, size);
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", std::string(text::name_of(options.dialect)).c_str(), problem.c_str());
  std::abort();
}
