// A body in chunks (RFC 9112 section 7.1) to its bytes, as they arrive. Strict: CRLF everywhere, plain hexadecimal
// sizes. Extensions and trailers are read and dropped. Fuzzed (tests/fuzz/net/http_head.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::net {

class ChunkedDecoder {
 public:
  enum class Result { need_more, done, too_large, malformed };

  // Takes from the front of `bytes` what it understands and appends data to `body`, which may grow to bytes_max: more
  // is too_large. Not to be called again after another result than need_more. What follows the last chunk stays in
  // `bytes`.
  Result feed(std::string_view& bytes, std::string& body, size_t bytes_max);

 private:
  enum class Part { size, data, data_end, trailer };
  bool take_line(std::string_view& bytes);

  Part part_ = Part::size;
  std::string line_;       // of a size or trailer, as far as it has come
  bool line_bad_ = false;  // it cannot become a valid one
  size_t trailer_bytes_ = 0;
  uint64_t left_ = 0;  // of the chunk at hand; of its CRLF
};

}  // namespace hearth::net
