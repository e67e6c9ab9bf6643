// libFuzzer target: any bytes as a text message of /ws/chat. What is taken has an id that an ack carries back.
// Seeds: tests/fuzz/corpus/chat_frames.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/dialects/chat_frames.h"

using namespace hearth;
using namespace hearth::server;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const frames::ClientFrame frame = frames::read_frame({reinterpret_cast<const char*>(data), size}, {});
    const std::string answer =
        frames::check(frame) == frames::Standing::taken ? frames::ack(frame.id) : frames::not_yet(frame);
    const json::Value read = json::parse(answer, "an answer");
    if (*read.get("id") != frame.id) __builtin_trap();
  } catch (const RequestError&) {  // the answer to a bad frame
  }
  return 0;
}
