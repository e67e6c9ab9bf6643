#include "net/chunked_decoder.h"

#include <algorithm>
#include <optional>

#include "net/grammar.h"
#include "net/request_head.h"

namespace hearth::net {

namespace {

constexpr size_t kLineBytesMax = 1024;
constexpr size_t kTrailerBytesMax = 8 << 10;

std::optional<uint64_t> chunk_size(std::string_view line) {
  size_t digits = 0;
  uint64_t size = 0;
  for (; digits < line.size() && hex_digit(line[digits]) >= 0; ++digits) {
    if (digits == 15) return std::nullopt;
    size = 16 * size + static_cast<uint64_t>(hex_digit(line[digits]));
  }
  const std::string_view extension = trim(line.substr(digits));
  if (digits == 0 || !std::all_of(extension.begin(), extension.end(), is_value_char)) return std::nullopt;
  if (digits < line.size() && !extension.starts_with(';')) return std::nullopt;
  return size;
}

}  // namespace

// A line into line_, without CRLF; false: it is not complete, or bad.
bool ChunkedDecoder::take_line(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    const bool after_cr = line_.ends_with('\r');
    if (c == '\n' && after_cr) {
      line_.pop_back();
      return true;
    }
    if (c == '\n' || after_cr || line_.size() == kLineBytesMax) {
      line_bad_ = true;
      return false;
    }
    line_.push_back(c);
  }
  return false;
}

ChunkedDecoder::Result ChunkedDecoder::feed(std::string_view& bytes, std::string& body, size_t bytes_max) {
  while (!bytes.empty()) {
    switch (part_) {
      case Part::size: {
        if (!take_line(bytes)) break;
        const auto size = chunk_size(line_);
        line_.clear();
        if (!size) return Result::malformed;
        if (*size > bytes_max - body.size()) return Result::too_large;
        left_ = *size;
        part_ = *size > 0 ? Part::data : Part::trailer;
        break;
      }
      case Part::data: {
        const size_t n = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
        body.append(bytes.substr(0, n));
        bytes.remove_prefix(n);
        left_ -= n;
        if (left_ > 0) break;
        left_ = 2;
        part_ = Part::data_end;
        break;
      }
      case Part::data_end:
        if (bytes.front() != (left_ == 2 ? '\r' : '\n')) return Result::malformed;
        bytes.remove_prefix(1);
        if (--left_ == 0) part_ = Part::size;
        break;
      case Part::trailer:
        if (!take_line(bytes)) break;
        if (line_.empty()) return Result::done;
        trailer_bytes_ += line_.size();
        if (trailer_bytes_ > kTrailerBytesMax || !parse_header_line(line_)) return Result::malformed;
        line_.clear();
        break;
    }
    if (line_bad_) return Result::malformed;
  }
  return Result::need_more;
}

}  // namespace hearth::net
