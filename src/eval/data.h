// Texts that evaluations run on: a .txt file (one document) or .jsonl (field "text", one document a line).
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::eval {

// Throws Error{not_found, io}; Error{corrupt_file} with the line of a bad record; Error{invalid_argument} for no text.
std::vector<std::string> read_documents(const std::filesystem::path& path);

// NumPy's legacy permutation (MT19937, masked rejection) for a seed, so that runs match mlx_lm.perplexity's order.
std::vector<size_t> permutation(size_t n, uint32_t seed);

}  // namespace hearth::eval
