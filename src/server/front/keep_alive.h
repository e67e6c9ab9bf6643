// keep_alive of requests (spec server 9).
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace hearth::server {

// "300", "10m", "1h30m", "-1": how long an idle model stays; nullopt: for good. Throws RequestError.
std::optional<std::chrono::milliseconds> parse_keep_alive(const std::string& text);

}  // namespace hearth::server
