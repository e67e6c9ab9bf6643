#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/args.h"
#include "cli/help.h"

namespace hearth::cli {
namespace {

std::vector<std::string> verbs() {
  std::vector<std::string> names;
  for (const Command* command : shown_commands()) {
    names.emplace_back(command->name);
    for (std::string& alias : split_words(command->aliases)) names.push_back(std::move(alias));
  }
  return names;
}

std::vector<const Flag*> flags_of(const Command& command) {
  std::vector<const Flag*> flags;
  for (const Flag& flag : command.flags) flags.push_back(&flag);
  for (const Flag& flag : common_flags())
    if (command.json || flag.name != "json") flags.push_back(&flag);
  return flags;
}

bool takes_model(const Command& command) {
  return !command.positionals.empty() && command.positionals[0].name == "MODEL";
}

std::string choices_of(std::string_view choices) {
  std::string words(choices);
  std::replace(words.begin(), words.end(), '|', ' ');
  return words;
}

// Inside single quotes of all three shells (fish also reads \\ there; help texts hold no backslash).
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string bash_completion() {
  std::string flags, values, positionals;
  for (const Command* command : shown_commands()) {
    std::string names = std::string(command->name);
    for (const std::string& alias : split_words(command->aliases)) names += "|" + alias;
    std::string words;
    for (const Flag* flag : flags_of(*command)) {
      words += " --" + std::string(flag->name);
      if (flag->kind == ValueKind::choice)
        values += fmt::format("    {}:--{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return;;\n", command->name,
                              flag->name, choices_of(flag->value));
      else if (flag->kind == ValueKind::file)
        values +=
            fmt::format("    {}:--{}) COMPREPLY=($(compgen -f -- \"$word\")); return;;\n", command->name, flag->name);
      else if (flag->kind != ValueKind::none)
        values += fmt::format("    {}:--{}) return;;\n", command->name, flag->name);
    }
    flags += fmt::format("    {}) flags='{}';;\n", names, words.substr(1));
    if (takes_model(*command)) positionals += fmt::format("    {}) models=1;;\n", names);
    else if (!command->positionals.empty() && !command->positionals[0].choices.empty())
      positionals += fmt::format("    {}) words='{}';;\n", names, choices_of(command->positionals[0].choices));
  }
  return fmt::format(R"sh(# bash completion of hearth: source it, or save it as /etc/bash_completion.d/hearth
_hearth() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}"
  local flags= words= models=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{}' -- "$word")); return
  fi
  case "$verb:$before" in
{}  esac
  case "$verb" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")); return;;
  esac
  case "$verb" in
{}  esac
  if [ -n "$models" ]; then
    words="$(hearth ls --names 2>/dev/null)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _hearth hearth
)sh",
                     fmt::join(verbs(), " "), values, flags, positionals);
}

std::string zsh_completion() {
  std::string rows, flags, choices;
  for (const Command* command : shown_commands()) {
    std::string names(command->name);
    for (const std::string& alias : split_words(command->aliases)) names += "|" + alias;
    rows += fmt::format("    {}\n", in_quotes(fmt::format("{}:{}", command->name, command->summary)));
    flags += fmt::format("    {})\n      flags=(\n", names);
    for (const Flag* flag : flags_of(*command))
      flags += fmt::format("        {}\n", in_quotes(fmt::format("--{}:{}", flag->name, flag->help)));
    flags += "      )\n";
    if (takes_model(*command)) flags += "      others=(${(f)\"$(hearth ls --names 2>/dev/null)\"})\n";
    else if (!command->positionals.empty() && !command->positionals[0].choices.empty())
      flags += fmt::format("      others=({})\n", choices_of(command->positionals[0].choices));
    flags += "      ;;\n";
  }
  return fmt::format(R"sh(#compdef hearth
# zsh completion of hearth: source it, or save it as _hearth in a folder of $fpath
_hearth() {{
  local -a verbs flags others
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'verb' verbs
    return
  fi
  case "${{words[2]}}" in
{}  esac
  if [[ "$PREFIX" == -* ]]; then
    _describe 'flag' flags
  else
    (( $#others )) && compadd -a others
    _files
  fi
}}
(( $+functions[compdef] )) && compdef _hearth hearth
)sh",
                     rows, flags);
}

std::string fish_completion() {
  std::string text = "# fish completion of hearth: save it as ~/.config/fish/completions/hearth.fish\n";
  for (const Command* command : shown_commands())
    text += fmt::format("complete -c hearth -n __fish_use_subcommand -f -a {} -d {}\n", command->name,
                        in_quotes(command->summary));
  for (const Command* command : shown_commands()) {
    std::string names(command->name);
    for (const std::string& alias : split_words(command->aliases)) names += " " + alias;
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", names);
    for (const Flag* flag : flags_of(*command)) {
      std::string extra;
      if (flag->kind == ValueKind::choice) extra = fmt::format(" -x -a '{}'", choices_of(flag->value));
      else if (flag->kind == ValueKind::file) extra = " -r";
      else if (flag->kind != ValueKind::none) extra = " -x";
      text += fmt::format("complete -c hearth {} -l {}{} -d {}\n", when, flag->name, extra, in_quotes(flag->help));
    }
    if (takes_model(*command))
      text += fmt::format("complete -c hearth {} -a '(hearth ls --names 2>/dev/null)'\n", when);
    else if (!command->positionals.empty() && !command->positionals[0].choices.empty())
      text += fmt::format("complete -c hearth {} -f -a '{}'\n", when, choices_of(command->positionals[0].choices));
  }
  return text;
}

}  // namespace hearth::cli
