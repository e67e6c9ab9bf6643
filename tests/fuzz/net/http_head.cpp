// libFuzzer target: any bytes as requests of one connection, or as an answer. A head found in one piece is found
// at the same place when bytes come in two, and so is the end of a body in chunks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/chunked_decoder.h"
#include "net/http_client.h"
#include "net/request_head.h"

using namespace hearth::net;

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

size_t read_head(std::string_view bytes, size_t cut) {
  const HttpLimits limits;
  HeadScanner whole(limits), pieces(limits);
  const auto at_once = whole.scan(bytes);
  auto in_two = pieces.scan(bytes.substr(0, cut));
  const auto* found = std::get_if<std::optional<size_t>>(&in_two);
  if (found && !*found) in_two = pieces.scan(bytes);
  require(at_once.index() == in_two.index());
  const auto* size = std::get_if<std::optional<size_t>>(&at_once);
  if (size == nullptr || !*size) return 0;
  require(**size <= bytes.size() && **size <= limits.head_bytes && *size == std::get<std::optional<size_t>>(in_two));
  const auto parsed = parse_head(bytes.substr(0, **size), limits);
  if (const auto* head = std::get_if<ParsedHead>(&parsed)) {
    require(!head->head.path.empty() && head->head.path.find('\0') == std::string::npos);
    require(!(head->chunked && head->content_length) && head->head.headers.size() <= limits.headers_max);
    for (const Header& header : head->head.headers) require(header.second.find_first_of("\r\n") == std::string::npos);
    query_parameters(head->head.query);
  }
  return **size;
}

void read_chunks(std::string_view bytes, size_t cut) {
  constexpr size_t kBytesMax = 1000;
  ChunkedDecoder whole, pieces;
  std::string body, body_in_two;
  std::string_view rest = bytes, first = bytes.substr(0, cut);
  const auto at_once = whole.feed(rest, body, kBytesMax);
  auto in_two = pieces.feed(first, body_in_two, kBytesMax);
  std::string_view second = bytes.substr(cut - first.size());
  if (in_two == ChunkedDecoder::Result::need_more) in_two = pieces.feed(second, body_in_two, kBytesMax);
  require(at_once == in_two && body.size() <= kBytesMax);
  if (at_once == ChunkedDecoder::Result::done) require(body == body_in_two && rest == second);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t cut = (data[0] + size_t{256} * data[1]) % (bytes.size() + 1);
  read_head(bytes, cut);
  read_chunks(bytes, cut);
  try {
    parse_response_head(bytes);
  } catch (const hearth::Error& e) {
    require(e.kind() == hearth::ErrorKind::corrupt_file);
  }
  return 0;
}
