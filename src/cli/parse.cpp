// The one translation unit that includes CLI11. It only sorts words: positionals never pass through the library (which
// would read "[a,b]" as a list), and unknown flags come back from it so that we can suggest the nearest name.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "base/error.h"
#include "cli/foreign_words.h"
#include "cli/raw_args.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

// `-m M`, `--model M`, `-hf org/repo[:quant]` of other tools stand for the first positional MODEL.
constexpr Flag kModel = {
    .name = "model", .kind = ValueKind::text, .value = "MODEL", .aliases = "-m -hf -hfr --hf-repo"};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

// "-hf" has one dash and several letters, which the library has no notion of: it is looked up as "--hf".
bool is_long_with_one_dash(std::string_view word) { return word.size() > 2 && word[0] == '-' && word[1] != '-'; }

std::vector<std::string> spellings(const Flag& flag) {
  std::vector<std::string> all = split(flag.aliases, ' ');
  all.insert(all.begin(), "--" + std::string(flag.name));
  return all;
}

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> flags(command.flags.begin(), command.flags.end());
  for (const Flag& flag : common_flags())
    if (command.json || flag.name != "json") flags.push_back(flag);
  if (!command.positionals.empty() && command.positionals[0].name == "MODEL") flags.push_back(kModel);
  return flags;
}

[[noreturn]] void unknown_flag(const Command& command, const std::string& word, const std::vector<std::string>& known) {
  const std::string name = word.substr(0, word.find('='));
  if (const auto hint = foreign_hint(command, name))
    fail(ErrorKind::invalid_argument, "{} has no flag {}: {}", command.name, name, *hint);
  const std::vector<std::string> near = hub::nearest(name, known, 1);
  if (!near.empty() && name.size() > 2)  // one letter is as near as any other
    fail(ErrorKind::invalid_argument, "{} has no flag {}; did you mean {}?", command.name, name, near[0]);
  fail(ErrorKind::invalid_argument, "{} has no flag {} (text that begins with a dash goes after --)", command.name,
       name);
}

// Where another program's words begin: behind the first word that is neither a flag nor a flag's value.
std::span<const std::string>::iterator own_end(const Command& command, std::span<const std::string> words) {
  const std::vector<Flag> flags = flags_of(command);
  const auto takes_next = [&](const std::string& word) {
    for (const Flag& flag : flags)
      for (const std::string& spelling : spellings(flag))
        if (word == spelling) return flag.kind != ValueKind::none;
    return false;
  };
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") return words.end();
    if (word->size() < 2 || (*word)[0] != '-') return word + 1;
    if (takes_next(*word) && word + 1 != words.end()) ++word;
  }
  return words.end();
}

}  // namespace

RawArgs parse_words(const Command& command, std::span<const std::string> words) {
  if (command.passes_on) {
    const auto end = own_end(command, words);
    Command own = command;
    own.passes_on = false;
    RawArgs raw = parse_words(own, {words.begin(), end});
    // One "--" between the two may stand there for clarity; a second is the other program's.
    raw.positionals.insert(raw.positionals.end(), end != words.end() && *end == "--" ? end + 1 : end, words.end());
    return raw;
  }
  const auto end_of_flags = std::find(words.begin(), words.end(), "--");
  std::vector<std::string> before(words.begin(), end_of_flags);
  std::vector<std::string> after;
  if (end_of_flags != words.end()) after.assign(end_of_flags + 1, words.end());

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  struct Bound {
    Flag flag;
    CLI::Option* option;
  };
  std::vector<Bound> bound;
  std::vector<std::string> known;
  for (const Flag& flag : flags_of(command)) {
    std::string names;
    for (std::string& spelling : spellings(flag)) {
      known.push_back(spelling);
      if (is_long_with_one_dash(spelling)) {
        for (std::string& word : before)
          if (word == spelling || word.starts_with(spelling + "=")) word.insert(0, "-");
        spelling.insert(0, "-");
      }
      names += (names.empty() ? "" : ",") + spelling;
    }
    CLI::Option* option = flag.kind == ValueKind::none ? app.add_flag(names) : app.add_option(names);
    if (flag.kind != ValueKind::none)
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
    else option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    bound.push_back({flag, option});
  }

  // "-ngl" would be read as -n with the value "gl".
  for (const std::string& word : before)
    if (is_long_with_one_dash(word) && foreign_hint(command, word)) unknown_flag(command, word, known);

  // "--stop=" gives an empty text, which the library takes as two words alone; and for a value left out it has no
  // sentence that names the flag and what is wanted.
  for (const Bound& each : bound) {
    if (each.flag.kind == ValueKind::none) continue;
    for (const std::string& spelling : spellings(each.flag)) {
      const std::string word = is_long_with_one_dash(spelling) ? "-" + spelling : spelling;
      if (const auto at = std::find(before.begin(), before.end(), word + "="); at != before.end()) {
        *at = word;
        before.insert(at + 1, "");
      }
      if (!before.empty() && before.back() == word)
        fail(ErrorKind::invalid_argument, "{} needs a value: {} {}", spelling, spelling,
             each.flag.kind == ValueKind::choice || !each.flag.value.empty() ? each.flag.value : "VALUE");
    }
  }

  // The library reads its vector from the back.
  std::reverse(before.begin(), before.end());
  try {
    app.parse(before);
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::invalid_argument, "{}: {}", command.name, error.what());
  }

  RawArgs raw;
  std::vector<std::string> models;
  for (const Bound& each : bound) {
    if (each.option->count() == 0) continue;
    std::vector<std::string> values = each.option->results();
    if (each.flag.kind == ValueKind::none) {
      const std::string& last = values.back();
      // `-v` given n times arrives as n words; `--json=x` as x.
      if (last != "true" && last != "false")
        fail(ErrorKind::invalid_argument, "--{} is a switch: '{}' is neither true nor false", each.flag.name, last);
      values = {last};
    }
    if (each.flag.name == kModel.name && each.flag.help.empty()) models = {values.back()};
    else if (each.flag.name == "help") raw.help = values.back() == "true";
    else raw.flags[std::string(each.flag.name)] = std::move(values);
  }
  raw.positionals = models;
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-') unknown_flag(command, word, known);
    raw.positionals.push_back(word);
  }
  raw.positionals.insert(raw.positionals.end(), after.begin(), after.end());
  return raw;
}

}  // namespace hearth::cli
