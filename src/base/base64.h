// Base64 with the standard alphabet and padding (RFC 4648, section 4).
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace hearth {

std::string base64(std::span<const std::byte> bytes);

}  // namespace hearth
