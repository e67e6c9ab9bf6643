#include "net/response_head.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "base/error.h"
#include "base/printable.h"
#include "net/grammar.h"

namespace hearth::net {

namespace {

struct Reason {
  int status;
  std::string_view text;
};
constexpr Reason kReasons[] = {{200, "OK"},
                               {201, "Created"},
                               {202, "Accepted"},
                               {204, "No Content"},
                               {206, "Partial Content"},
                               {301, "Moved Permanently"},
                               {302, "Found"},
                               {303, "See Other"},
                               {304, "Not Modified"},
                               {307, "Temporary Redirect"},
                               {308, "Permanent Redirect"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {406, "Not Acceptable"},
                               {408, "Request Timeout"},
                               {409, "Conflict"},
                               {410, "Gone"},
                               {411, "Length Required"},
                               {412, "Precondition Failed"},
                               {413, "Content Too Large"},
                               {414, "URI Too Long"},
                               {415, "Unsupported Media Type"},
                               {416, "Range Not Satisfiable"},
                               {417, "Expectation Failed"},
                               {421, "Misdirected Request"},
                               {422, "Unprocessable Content"},
                               {425, "Too Early"},
                               {426, "Upgrade Required"},
                               {428, "Precondition Required"},
                               {429, "Too Many Requests"},
                               {431, "Request Header Fields Too Large"},
                               {500, "Internal Server Error"},
                               {501, "Not Implemented"},
                               {502, "Bad Gateway"},
                               {503, "Service Unavailable"},
                               {504, "Gateway Timeout"},
                               {505, "HTTP Version Not Supported"},
                               {507, "Insufficient Storage"},
                               {529, "Overloaded"}};

constexpr std::string_view kOwn[] = {"content-length", "transfer-encoding", "connection", "date", "keep-alive"};

bool is_value(std::string_view value) { return std::all_of(value.begin(), value.end(), is_value_char); }

}  // namespace

std::string_view reason_of(int status) {
  for (const Reason& reason : kReasons)
    if (reason.status == status) return reason.text;
  return "Unknown";
}

void check_response(int status, const std::vector<Header>& headers, std::string_view content_type) {
  if (status < 200 || status > 599)
    fail(ErrorKind::invalid_argument, "an answer's status is {}, expected 200 to 599", status);
  if (!is_value(content_type))
    fail(ErrorKind::invalid_argument, "an answer's content type has control characters: {}",
         printable(content_type, 100));
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) fail(ErrorKind::invalid_argument, "{} is no name of a header", printable(name, 100));
    if (!is_value(value))
      fail(ErrorKind::invalid_argument, "the header {} has control characters: {}", name, printable(value, 100));
    for (const std::string_view own : kOwn)
      if (same_token(name, own)) fail(ErrorKind::invalid_argument, "the header {} is set by the server alone", name);
  }
}

std::string http_date(WallTime time) {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto days = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(seconds - days);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(days).c_encoding()],
                     unsigned(date.day()), kMonths[unsigned(date.month()) - 1], int(date.year()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string format_head(const ResponseHead& head, const HeadFraming& framing, WallTime now) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status, reason_of(head.status), http_date(now));
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  if (!head.content_type.empty()) add("Content-Type", head.content_type);
  for (const auto& [name, value] : head.headers) add(name, value);
  if (framing.content_length && head.status != 204) add("Content-Length", std::to_string(*framing.content_length));
  if (framing.chunked) add("Transfer-Encoding", "chunked");
  if (framing.close) add("Connection", "close");
  return out += "\r\n";
}

std::string chunk_of(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

bool is_bodiless(int status, bool to_head_request) { return to_head_request || status == 204 || status == 304; }

}  // namespace hearth::net
