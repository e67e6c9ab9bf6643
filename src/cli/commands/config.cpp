#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/help.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "VERB", .help = "settings of this verb; without it those of all verbs", .required = false},
};
constexpr Flag kFlags[] = {
    {.name = "show-origin", .help = "also where each value comes from: environment, file and line, default"},
};

int run(Context& context) {
  const std::optional<std::string> verb = context.args().positional("VERB");
  const Settings settings = load_settings(working_folder(), context.env());
  bool found = false;
  json::Array rows;
  for (const Command* command : shown_commands()) {
    if (verb && command->name != *verb) continue;
    found = true;
    if (!command->settings) continue;
    // As they would hold now without flags on the verb's command line; positionals are no settings.
    Command bare = *command;
    bare.positionals = {};
    const Args args = resolve(bare, RawArgs{}, context.env(), settings);
    for (const auto& [name, value] : args.values()) {
      if (!verb && value.origin == Origin::fallback) continue;
      if (context.json()) {
        json::Object row;
        row["verb"] = command->name;
        row["name"] = name;
        row["value"] = value.texts.size() == 1 ? json::Value(value.texts[0])
                                               : json::Value(json::Array(value.texts.begin(), value.texts.end()));
        row["origin"] = name_of(value.origin);
        row["where"] = value.where;
        rows.emplace_back(std::move(row));
        continue;
      }
      const std::string line = fmt::format("{}.{} = {}", command->name, name, fmt::join(value.texts, ", "));
      if (context.args().on("show-origin")) context.print("{:<44} {}\n", line, context.dim(value.where));
      else context.print("{}\n", line);
    }
  }
  if (!found) fail(ErrorKind::invalid_argument, "no verb '{}'", *verb);
  if (context.json()) {
    json::Object document;
    document["files"] = json::Array{settings.project.name, settings.user.name};
    document["settings"] = std::move(rows);
    context.print_json(std::move(document));
  }
  return 0;
}

}  // namespace

const Command kConfig = {
    .name = "config",
    .aliases = "",
    .summary = "settings in force, and where each comes from",
    .details =
        "Order: flag, HEARTH_<NAME> in the environment, hearth.toml in the working\n"
        "folder, config.toml in $XDG_CONFIG_HOME/hearth, built-in default. Without VERB\n"
        "only what differs from the defaults is shown.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .settings = false,
};

}  // namespace hearth::cli
