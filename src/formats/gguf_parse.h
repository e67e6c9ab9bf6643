// One GGUF file's header as tables; private to formats/gguf.
#pragma once
#include <deque>
#include <span>
#include <string>

#include "formats/gguf.h"

namespace hearth::formats {

size_t size_of(GgufType type);  // bytes of a scalar; 0 for strings and arrays
int64_t load_integer(GgufType type, const std::byte* p);
double load_number(GgufType type, const std::byte* p);

// Appends the file's values and tensors. Every extent is compared with the real size before anything is stored; keys
// and names are unique only after the caller's index says so. Returns the version.
int parse_gguf(std::span<const std::byte> bytes, const std::string& what, const GgufLimits& limits,
               std::deque<GgufValue>& values, std::deque<GgufTensor>& tensors);

}  // namespace hearth::formats
