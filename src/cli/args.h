// Checked values of one command line, each with where it came from. Order: flag, HEARTH_<NAME>, another program's
// variable, hearth.toml in the working folder, the user's config.toml, the built-in default (dependencies 5.1.4).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/raw_args.h"
#include "cli/settings.h"
#include "hub/paths.h"

namespace hearth::cli {

enum class Origin { command_line, environment, project_file, user_file, fallback };
std::string_view name_of(Origin origin);

struct Value {
  std::vector<std::string> texts;  // one unless the flag repeats
  Origin origin = Origin::fallback;
  std::string where;     // "--seed", "HEARTH_SEED", "hearth.toml:3", "default"
  std::string key = {};  // of a file's setting, as the file spells it
};

// Every value has been checked against its flag's kind and range when Args is made, so the getters cannot fail on
// input. They abort (a bug) when the command has no such flag, or it has another kind.
class Args {
 public:
  bool on(std::string_view flag) const;     // switches
  bool given(std::string_view flag) const;  // has any value: given, from a file, or a default
  Origin origin(std::string_view flag) const;

  // Absent (nullopt, or an empty list) only where the flag has no default.
  std::optional<std::string> text(std::string_view flag) const;  // text, file, choice
  std::vector<std::string> texts(std::string_view flag) const;
  std::optional<int64_t> integer(std::string_view flag) const;
  std::optional<double> number(std::string_view flag) const;
  std::optional<int64_t> bytes(std::string_view flag) const;
  std::optional<double> seconds(std::string_view flag) const;

  // The positional of that name; nullopt when an optional one is absent.
  std::optional<std::string> positional(std::string_view name) const;
  std::vector<std::string> positionals(std::string_view name) const;

  const std::map<std::string, Value, std::less<>>& values() const { return values_; }
  const std::vector<std::string>& notes() const { return notes_; }  // for stderr: conflicts, unknown settings

 private:
  friend Args resolve(const Command&, const RawArgs&, const hub::Env&, const Settings&);
  const Value* find(std::string_view flag, std::initializer_list<ValueKind> kinds) const;
  const Command* command_ = nullptr;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::vector<std::string>> positionals_;  // as in command_->positionals
  std::vector<std::string> notes_;
};

// Throws Error{invalid_argument} naming the flag (or variable, or file and line), the value and what is allowed.
Args resolve(const Command& command, const RawArgs& raw, const hub::Env& env, const Settings& settings);

std::string env_name(const Flag& flag);  // "HEARTH_MAX_TOKENS"

// The flag of that name in the command's own flags or the common ones; null when there is none.
const Flag* find_flag(const Command& command, std::string_view name);

// Throws Error{invalid_argument} "<where> is '<text>': <what is allowed>".
void check_value(const Flag& flag, const std::string& text, std::string_view where);

}  // namespace hearth::cli
