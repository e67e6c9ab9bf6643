// libFuzzer target: any bytes as a body of each dialect that talks. What is taken becomes messages that chat
// takes as well, and a frame that reads back as what was written. Seeds: tests/fuzz/corpus/dialects.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "server/dialects/anthropic.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/responses.h"

using namespace hearth;
using namespace hearth::server;

namespace {

void check(const Generation& generation) {
  openai::check_messages(generation.messages);
  if (!generation.tools.is_null()) openai::check_tools(generation.tools);
  const json::Value wire = to_json(generation);
  if (to_json(generation_of(wire)) != wire) __builtin_trap();
}

template <class Parse>
void parse_with(const Parse& parse) {
  try {
    check(parse());
  } catch (const RequestError&) {  // the answer to a bad body
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json::Value value;
  try {
    value = json::parse(std::string_view(reinterpret_cast<const char*>(data), size), "the body");
  } catch (const Error&) {
    return 0;
  }
  if (!value.object()) return 0;
  const json::Object& body = *value.object();
  parse_with([&] { return openai::parse_chat(body).generation; });
  parse_with([&] { return anthropic::parse_messages(body).generation; });
  parse_with([&] { return anthropic::parse_count(body).generation; });
  parse_with([&] {
    responses::ResponsesRequest request = responses::parse_responses(body);
    converse(request, {});
    return request.generation;
  });
  return 0;
}
