// Reads the wire format of protocol buffers, field by field, with every length checked against what is left.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace hearth::text {

class ProtobufReader {
 public:
  ProtobufReader(std::string_view bytes, std::string_view what) : left_(bytes), what_(what) {}

  struct Field {
    uint32_t number;
    uint32_t wire_type;      // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
    uint64_t value;          // of types 0, 1, 5
    std::string_view bytes;  // of type 2
  };

  // The next field, or false at the end. Throws Error{corrupt_file} for anything that is cut or malformed.
  bool next(Field& field) {
    if (left_.empty()) return false;
    const uint64_t key = varint();
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
      fail(ErrorKind::corrupt_file, "{}: protobuf field number {}", what_, key >> 3);
    field = {static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
    switch (field.wire_type) {
      case 0: field.value = varint(); break;
      case 1: field.value = fixed(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.value = fixed(4); break;
      default: fail(ErrorKind::corrupt_file, "{}: protobuf wire type {}", what_, field.wire_type);
    }
    return true;
  }

  std::string_view bytes(const Field& f) const { return expect(f, 2), f.bytes; }
  int64_t integer(const Field& f) const { return expect(f, 0), static_cast<int64_t>(f.value); }
  bool flag(const Field& f) const { return expect(f, 0), f.value != 0; }
  float number(const Field& f) const { return expect(f, 5), std::bit_cast<float>(static_cast<uint32_t>(f.value)); }

 private:
  void expect(const Field& f, uint32_t wire_type) const {
    if (f.wire_type != wire_type)
      fail(ErrorKind::corrupt_file, "{}: protobuf field {} has wire type {}, expected {}", what_, f.number, f.wire_type,
           wire_type);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_[0]);
      left_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail(ErrorKind::corrupt_file, "{}: protobuf varint without end", what_);
  }
  std::string_view take(uint64_t size) {
    if (size > left_.size())
      fail(ErrorKind::corrupt_file, "{}: protobuf field of {} bytes, {} are left", what_, size, left_.size());
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }
  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    const std::string_view b = take(size);
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(b[i]);
    return value;
  }

  std::string_view left_;
  std::string_view what_;
};

}  // namespace hearth::text
