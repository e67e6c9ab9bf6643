// What a client may read of a sentence that was written for this machine's own person (spec server 4: an error names
// the field and the bound, never an internal path).
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hearth::server {

// The sentence with what a path leads to in place of each absolute path: a file of the model store by its name inside
// its repository, a folder of the store by the repository's name, any other by its last name. A path ends at white
// space, a quote, a bracket, a comma, a semicolon, or a colon with white space behind it; one that begins with one of
// `folders` may have such characters in that part. Any thread.
std::string client_sentence(std::string_view sentence, std::span<const std::filesystem::path> folders = {});

}  // namespace hearth::server
