// What a client may read of a sentence that was written for this machine's own person (spec server 4: an error names
// the field and the bound, never an internal path).
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// The sentence with what a path leads to in place of each path in one of `folders`, and of the folders themselves: a
// file of the model store by its name inside its repository, a folder of the store by the repository's name, any other
// by its last name. The folders may have any characters in their names; behind them a path ends at white space, a
// quote, a bracket, a comma, a semicolon, or a colon with white space behind it. Any thread.
std::string without_folders(std::string_view sentence, std::span<const std::filesystem::path> folders);

// The same for all other absolute paths too, as far as they can be told from words: one that seems to end goes on where
// a slash follows, before the next colon, comma or semicolon with white space behind it. Rather a word too few than a
// folder too many. Any thread.
std::string client_sentence(std::string_view sentence, std::span<const std::filesystem::path> folders = {});

// An absolute path and the folders that it lies in, but for those right below the root.
std::vector<std::filesystem::path> with_parents(const std::filesystem::path& path);

}  // namespace hearth::server
