// What Engine and Embedder throw where memory is too short for a load.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"

namespace hearth::decode {

// A load that does not fit: what the least of it needs, and the budget. Nothing of the weights was read.
class TooLarge : public Error {
 public:
  TooLarge(const std::string& message, int64_t needed_bytes, int64_t usable_bytes)
      : Error(ErrorKind::out_of_memory, message), needed_bytes_(needed_bytes), usable_bytes_(usable_bytes) {}
  int64_t needed_bytes() const { return needed_bytes_; }
  int64_t usable_bytes() const { return usable_bytes_; }

 private:
  int64_t needed_bytes_, usable_bytes_;
};

}  // namespace hearth::decode
