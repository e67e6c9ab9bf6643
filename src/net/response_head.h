// An answer's head as bytes, checked: what an owner hands in cannot break out of its header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/http.h"

namespace hearth::net {

// "Not Found" of 404; "Unknown" of a status without one.
std::string_view reason_of(int status);

// Throws Error{invalid_argument} for a status outside 200..599, a name that is no token or is the server's own
// (Content-Length, Transfer-Encoding, Connection, Date), a value with a control character.
void check_response(int status, const std::vector<Header>& headers, std::string_view content_type);

struct ResponseHead {
  int status = 200;
  std::vector<Header> headers{};
  std::string content_type{};
};

struct HeadFraming {
  std::optional<uint64_t> content_length;  // absent: chunked, or as far as the connection goes
  bool chunked = false;
  bool close = false;
};

// With its empty line. `now` becomes the Date.
std::string format_head(const ResponseHead& head, const HeadFraming& framing, WallTime now);

// A piece of a chunked body; not empty.
std::string chunk_of(std::string_view bytes);

// Sun, 06 Nov 1994 08:49:37 GMT
std::string http_date(WallTime time);

// Whether an answer of that status to that method is without a body, whatever its headers say.
bool is_bodiless(int status, bool to_head_request);

}  // namespace hearth::net
