#include "cli/args.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ascii.h"
#include "base/error.h"
#include "cli/units.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

constexpr std::array<Flag, 5> kCommonFlags = {{
    {.name = "json", .help = "print one JSON document (or lines of them) on stdout"},
    {.name = "quiet", .help = "no progress and no notes on stderr"},
    {.name = "verbose", .help = "more notes on stderr", .aliases = "-v"},
    {.name = "color",
     .kind = ValueKind::choice,
     .value = "auto|always|never",
     .fallback = "auto",
     .help = "colour of the output; also NO_COLOR, CLICOLOR_FORCE"},
    {.name = "help", .help = "this text", .aliases = "-h"},
}};

// Whole numbers without an exponent, as far as a double is sure of them.
std::string shown(double bound) {
  return bound == std::floor(bound) && std::fabs(bound) < 1e19 ? fmt::format("{:.0f}", bound)
                                                               : fmt::format("{}", bound);
}

std::string range_of(const Flag& flag) {
  const bool low = flag.min > -std::numeric_limits<double>::infinity();
  const bool high = flag.max < std::numeric_limits<double>::infinity();
  if (low && high) return fmt::format(" from {} to {}", shown(flag.min), shown(flag.max));
  if (low) return fmt::format(" of at least {}", shown(flag.min));
  if (high) return fmt::format(" of at most {}", shown(flag.max));
  return "";
}

std::vector<std::string> words_of(std::string_view choices) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= choices.size();) {
    const size_t end = std::min(choices.find('|', begin), choices.size());
    words.emplace_back(choices.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

[[noreturn]] void bad_value(std::string_view where, const std::string& text, const std::string& allowed) {
  fail(ErrorKind::invalid_argument, "{} is '{}': it must be {}", where, text, allowed);
}

void check_choice(std::string_view where, const std::string& text, std::string_view choices) {
  const std::vector<std::string> words = words_of(choices);
  if (std::find(words.begin(), words.end(), text) != words.end()) return;
  const std::vector<std::string> near = hub::nearest(text, words, 1);
  bad_value(where, text,
            fmt::format("one of {}{}", fmt::join(words, ", "),
                        near.empty() ? "" : fmt::format("; did you mean {}?", near[0])));
}

// A switch's value in the environment: the words people use for yes and no.
std::string switch_value(std::string_view where, const std::string& text) {
  if (text == "1" || text == "true" || text == "on" || text == "yes") return "true";
  if (text == "0" || text == "false" || text == "off" || text == "no" || text.empty()) return "false";
  bad_value(where, text, "1 or 0 (also true, false, on, off, yes, no)");
}

// Other programs' variables may hold a list, a number for each level of nesting (OMP_NUM_THREADS=4,3): the first is
// ours.
std::string first_of_list(std::string_view text) {
  text = text.substr(0, text.find(','));
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_last_not_of(" \t") + 1));
}

std::vector<std::vector<std::string>> place_positionals(const Command& command, const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> placed(command.positionals.size());
  size_t next = 0;
  for (size_t i = 0; i < command.positionals.size(); ++i) {
    const Positional& positional = command.positionals[i];
    while (next < words.size() && (placed[i].empty() || positional.repeat)) placed[i].push_back(words[next++]);
    if (placed[i].empty() && positional.required)
      fail(ErrorKind::invalid_argument, "{} needs {} ({})", command.name, positional.name, positional.help);
    if (positional.name == "MODEL" && !placed[i].empty() && placed[i][0].empty())
      fail(ErrorKind::invalid_argument, "MODEL is empty, expected a name or a path");
    if (!positional.choices.empty())
      for (const std::string& word : placed[i]) check_choice(positional.name, word, positional.choices);
  }
  if (next < words.size())
    fail(ErrorKind::invalid_argument, "{} takes {} argument{}, and '{}' is one more{}", command.name,
         command.positionals.size(), command.positionals.size() == 1 ? "" : "s", words[next],
         command.positionals.empty() ? "" : " (quote text that holds blanks)");
  return placed;
}

}  // namespace

std::span<const Flag> common_flags() { return kCommonFlags; }

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::command_line: return "command line";
    case Origin::environment: return "environment";
    case Origin::project_file: return "project file";
    case Origin::user_file: return "user file";
    case Origin::fallback: return "default";
  }
  return "unknown";
}

std::string env_name(const Flag& flag) {
  std::string name = "HEARTH_";
  for (const char c : flag.name) name += c == '-' ? '_' : ascii::upper(c);
  return name;
}

const Flag* find_flag(const Command& command, std::string_view name) {
  for (const Flag& flag : command.flags)
    if (flag.name == name) return &flag;
  for (const Flag& flag : kCommonFlags)
    if (flag.name == name && (command.json || name != "json")) return &flag;
  return nullptr;
}

void check_value(const Flag& flag, const std::string& text, std::string_view where) {
  const auto in_range = [&](std::optional<double> value) { return value && *value >= flag.min && *value <= flag.max; };
  switch (flag.kind) {
    case ValueKind::none: switch_value(where, text); return;
    case ValueKind::text:
      if (flag.filled && text.empty()) fail(ErrorKind::invalid_argument, "{} is empty, expected {}", where, flag.value);
      return;
    case ValueKind::file:
      if (text.empty() || text.find('\0') != std::string::npos) bad_value(where, text, "a file name");
      return;
    case ValueKind::integer: {
      const std::optional<int64_t> value = parse_integer(text);
      if (!value || !in_range(static_cast<double>(*value))) bad_value(where, text, "an integer" + range_of(flag));
      return;
    }
    case ValueKind::number:
      if (!in_range(parse_number(text))) bad_value(where, text, "a number" + range_of(flag));
      return;
    case ValueKind::size: {
      const std::optional<int64_t> value = parse_size(text);
      if (!value || !in_range(static_cast<double>(*value)))
        bad_value(where, text, "a size such as 512MB, 4GB or 2GiB" + range_of(flag));
      return;
    }
    case ValueKind::duration:
      if (!in_range(parse_duration(text))) bad_value(where, text, "a duration such as 250ms, 30s, 10m or 2h");
      return;
    case ValueKind::choice: check_choice(where, text, flag.value); return;
  }
}

Args resolve(const Command& command, const RawArgs& raw, const hub::Env& env, const Settings& settings) {
  Args args;
  args.command_ = &command;
  args.positionals_ = place_positionals(command, raw.positionals);

  const auto resolve_flag = [&](const Flag& flag) -> std::optional<Value> {
    const std::string own_env = env_name(flag);
    if (const auto given = raw.flags.find(flag.name); given != raw.flags.end()) {
      Value value{given->second, Origin::command_line, "--" + std::string(flag.name)};
      if (!flag.repeat) value.texts = {value.texts.back()};
      return value;
    }
    const std::optional<std::string> own = env(own_env);
    const std::optional<std::string> foreign =
        flag.foreign_env.empty() ? std::nullopt : env(std::string(flag.foreign_env));
    if (own) {
      if (foreign && *foreign != *own)
        args.notes_.push_back(fmt::format("{}={} is used, {}={} is not", own_env, *own, flag.foreign_env, *foreign));
      return Value{{*own}, Origin::environment, own_env};
    }
    if (foreign && !foreign->empty())
      return Value{{first_of_list(*foreign)}, Origin::environment, std::string(flag.foreign_env)};
    for (const auto& [file, origin] :
         {std::pair(&settings.project, Origin::project_file), std::pair(&settings.user, Origin::user_file)})
      if (auto found = find_setting(*file, command, flag))
        return Value{std::move(found->texts), origin, fmt::format("{}:{}", file->name, found->line), found->key};
    if (!flag.fallback.empty()) return Value{{std::string(flag.fallback)}, Origin::fallback, "default"};
    return std::nullopt;
  };

  const auto add = [&](const Flag& flag) {
    if (flag.name == "help") return;
    std::optional<Value> value = resolve_flag(flag);
    if (!value) return;
    const std::string where = value->key.empty() ? value->where : fmt::format("{}: {}", value->where, value->key);
    for (std::string& text : value->texts) {
      check_value(flag, text, where);
      if (flag.kind == ValueKind::none) text = switch_value(where, text);
    }
    args.values_.emplace(flag.name, std::move(*value));
  };
  for (const Flag& flag : command.flags) add(flag);
  for (const Flag& flag : kCommonFlags)
    if (command.json || flag.name != "json") add(flag);
  return args;
}

const Value* Args::find(std::string_view name, std::initializer_list<ValueKind> kinds) const {
  const Flag* flag = find_flag(*command_, name);
  HEARTH_CHECK(flag != nullptr, "{} has no flag --{}", command_->name, name);
  HEARTH_CHECK(std::find(kinds.begin(), kinds.end(), flag->kind) != kinds.end(), "--{} has another kind", name);
  const auto found = values_.find(name);
  return found == values_.end() || found->second.texts.empty() ? nullptr : &found->second;
}

bool Args::on(std::string_view name) const {
  const Value* value = find(name, {ValueKind::none});
  return value && value->texts.back() == "true";
}

bool Args::given(std::string_view name) const { return values_.find(name) != values_.end(); }

Origin Args::origin(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? Origin::fallback : found->second.origin;
}

std::optional<std::string> Args::text(std::string_view name) const {
  const Value* value = find(name, {ValueKind::text, ValueKind::file, ValueKind::choice});
  return value ? std::optional(value->texts.back()) : std::nullopt;
}

std::vector<std::string> Args::texts(std::string_view name) const {
  const Value* value = find(name, {ValueKind::text, ValueKind::file, ValueKind::choice});
  return value ? value->texts : std::vector<std::string>{};
}

std::optional<int64_t> Args::integer(std::string_view name) const {
  const Value* value = find(name, {ValueKind::integer});
  return value ? parse_integer(value->texts.back()) : std::nullopt;
}

std::optional<double> Args::number(std::string_view name) const {
  const Value* value = find(name, {ValueKind::number});
  return value ? parse_number(value->texts.back()) : std::nullopt;
}

std::optional<int64_t> Args::bytes(std::string_view name) const {
  const Value* value = find(name, {ValueKind::size});
  return value ? parse_size(value->texts.back()) : std::nullopt;
}

std::optional<double> Args::seconds(std::string_view name) const {
  const Value* value = find(name, {ValueKind::duration});
  return value ? parse_duration(value->texts.back()) : std::nullopt;
}

std::vector<std::string> Args::positionals(std::string_view name) const {
  for (size_t i = 0; i < command_->positionals.size(); ++i)
    if (command_->positionals[i].name == name) return positionals_[i];
  HEARTH_CHECK(false, "{} has no positional {}", command_->name, name);
  return {};
}

std::optional<std::string> Args::positional(std::string_view name) const {
  const std::vector<std::string> all = positionals(name);
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

}  // namespace hearth::cli
