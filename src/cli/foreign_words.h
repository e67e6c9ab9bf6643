// Verbs and flags that people know from ollama, llama.cpp, mlx-lm, docker and hf: what to type here, or that it cannot
// be done.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace hearth::cli {

struct ForeignVerb {
  std::string_view words;  // space-separated; none is a verb of ours
  std::string_view hint;   // what stands behind "no verb 'X': ", one sentence
};
std::span<const ForeignVerb> foreign_verbs();

struct ForeignFlag {
  std::string_view words;      // with their dashes, space-separated
  std::string_view flag = {};  // ours, which a verb may have under that name alone; empty: there is none
  std::string_view hint = {};  // of a verb without it, or where there is none; empty: nothing to say
};
std::span<const ForeignFlag> foreign_flags();

// The hint for that word; nullopt: nobody else has it either.
std::optional<std::string_view> foreign_hint(std::string_view verb);
std::optional<std::string> foreign_hint(const Command& command, std::string_view flag);

// Throws Error{invalid_argument} for a MODEL or file that is an address of the web: nothing is fetched yet.
void refuse_address(std::string_view name);

}  // namespace hearth::cli
