#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/args.h"

namespace hearth::cli {
namespace {

constexpr size_t kColumns = 80, kLeft = 28;

// `text` broken at blanks so that no line passes 80 columns, lines after the first indented by `indent`.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (const std::string& word : split_words(text)) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string row(const std::string& left, std::string_view right) {
  if (left.size() + 2 > kLeft) return fmt::format("{}\n{:{}}{}\n", left, "", kLeft, wrapped(right, kLeft));
  return fmt::format("{:<{}}{}\n", left, kLeft, wrapped(right, kLeft));
}

std::string flag_row(const Flag& flag) {
  std::string left = "  ";
  for (const std::string& alias : split_words(flag.aliases))
    if (alias.size() == 2) left += fmt::format("{}, ", alias);
  left += fmt::format("--{}", flag.name);
  if (!flag.value.empty()) left += fmt::format(" {}", flag.value);
  std::string right(flag.help);
  if (!flag.fallback.empty()) right += fmt::format(" [{}]", flag.fallback);
  std::vector<std::string> longer;
  for (const std::string& alias : split_words(flag.aliases))
    if (alias.size() > 2) longer.push_back(alias);
  if (!longer.empty()) right += fmt::format(" (also {})", fmt::join(longer, ", "));
  return row(left, right);
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string usage_of(const Command& command) {
  std::string usage = fmt::format("hearth {}", command.name);
  for (const Positional& positional : command.positionals) {
    const std::string_view name = positional.choices.empty() ? positional.name : positional.choices;
    const std::string_view more = positional.repeat ? "..." : "";
    usage += positional.required ? fmt::format(" {}{}", name, more) : fmt::format(" [{}{}]", name, more);
  }
  usage += " [flags]";
  return usage;
}

std::string help_of(const Command& command) {
  std::string text = fmt::format("{}\n\nUsage: {}\n", command.summary, usage_of(command));
  if (!command.aliases.empty()) text += fmt::format("Also: {}\n", command.aliases);
  if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
  if (!command.positionals.empty()) {
    text += "\nArguments:\n";
    for (const Positional& positional : command.positionals)
      text += row(fmt::format("  {}", positional.name), positional.help);
  }
  if (!command.flags.empty()) {
    text += "\nFlags:\n";
    for (const Flag& flag : command.flags) text += flag_row(flag);
  }
  text += "\nCommon flags:\n";
  for (const Flag& flag : common_flags())
    if (command.json || flag.name != "json") text += flag_row(flag);
  const Flag& example = command.flags.empty() ? common_flags()[1] : command.flags[0];
  text += fmt::format("\nEvery flag has a twin in the environment; that of --{} is\n{}.\n", example.name,
                      env_name(example));
  return text;
}

std::string help_overview() {
  std::string text =
      "hearth: run and measure language models on your own machine\n\n"
      "Usage: hearth VERB [arguments] [flags]\n\nVerbs:\n";
  for (const Command* command : shown_commands()) {
    text += row(command->aliases.empty() ? fmt::format("  {}", command->name)
                                         : fmt::format("  {} ({})", command->name, command->aliases),
                command->summary);
  }
  text +=
      "\nMODEL is a .gguf file, a model folder, or a name in the store (hearth ls).\n"
      "hearth VERB --help explains a verb. Exit codes: 0 ok, 1 failed, 2 usage,\n"
      "3 not found, 4 refused (does not fit), 130 interrupted.\n";
  return text;
}

}  // namespace hearth::cli
