// libFuzzer target: any bytes as what a client sends over a WebSocket. In two pieces they are the same, text is
// UTF-8, and nothing is larger than it may be. Seeds: tests/fuzz/corpus/websocket_frame.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "net/websocket_frame.h"

using namespace hearth::net;

namespace {

constexpr size_t kMost = 1000;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// What came, up to the end or a failure, as one string.
std::string read_all(std::string_view bytes, size_t cut) {
  FrameReader reader(kMost);
  std::string seen;
  for (std::string_view part : {bytes.substr(0, cut), bytes.substr(cut)})
    for (;;) {
      const FrameReader::Result result = reader.feed(part);
      if (result == FrameReader::Result::need_more) {
        require(part.empty());
        break;
      }
      const std::string payload = reader.take();
      require(payload.size() <= kMost);
      if (result == FrameReader::Result::message && reader.is_text()) require(hearth::is_utf8(payload));
      if (result == FrameReader::Result::close) require(reader.code() == kCloseNoCode || is_close_code(reader.code()));
      seen += std::to_string(static_cast<int>(result)) + " " + payload + "\n";
      if (result == FrameReader::Result::failed) return seen + std::to_string(reader.code());
    }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  require(read_all(bytes, 0) == read_all(bytes, (data[0] + size_t{256} * data[1]) % (bytes.size() + 1)));
  return 0;
}
