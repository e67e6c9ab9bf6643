// Text that a command is given besides its flags.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

// All of standard input. Throws Error{io}; Error{invalid_argument} beyond bytes_max.
std::string read_stdin(size_t bytes_max = size_t{1} << 30);

// `text`, or standard input where it is "-".
std::string text_or_stdin(const std::string& text);

// Throws Error{invalid_argument} naming `what` and the first byte that is no UTF-8.
void require_utf8(std::string_view text, std::string_view what);

// Throws Error{invalid_argument}: an answer to nothing is asked for.
[[noreturn]] void refuse_empty_prompt();

// Token ids "1,2,3", or "@FILE" with ids separated by commas or white space. Throws Error{invalid_argument} naming the
// flag; Error{not_found, io} for the file.
std::vector<int32_t> parse_ids(const std::string& text, std::string_view flag);

}  // namespace hearth::cli
