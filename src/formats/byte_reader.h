// A cursor over untrusted bytes: every read is compared with the real size first. Little-endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hearth::formats {

class ByteReader {
 public:
  // `what` names the file in errors and must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // Throw Error{corrupt_file} "<what>: <field> at byte <position> needs <n> bytes, <remaining> are left".
  template <class T>
  T read(std::string_view field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(uint64_t size, std::string_view field) {
    if (size > remaining())
      fail(ErrorKind::corrupt_file, "{}: {} at byte {} needs {} bytes, {} are left", what_, field, position_, size,
           remaining());
    const auto part = bytes_.subspan(position_, size);
    position_ += size;
    return part;
  }
  std::string_view text(uint64_t size, std::string_view field) {
    const auto part = take(size, field);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
  size_t position_ = 0;
};

}  // namespace hearth::formats
