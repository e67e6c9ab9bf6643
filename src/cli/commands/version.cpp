#include "cli/version.h"
#include "cli/commands.h"
#include "cli/context.h"

namespace hearth::cli {
namespace {

constexpr Flag kFlags[] = {
    {.name = "licenses", .help = "also the licence of every library linked in", .aliases = "--licences"},
};

json::Array licences_json() {
  json::Array rows;
  for (const Licence& each : licences()) {
    json::Object row;
    row["name"] = each.name;
    row["version"] = each.version;
    row["license"] = each.licence;
    row["use"] = each.use;
    rows.emplace_back(std::move(row));
  }
  return rows;
}

int run(Context& context) {
  const bool with_licences = context.args().on("licenses");
  if (context.json()) {
    json::Object document;
    document["version"] = kVersionText;
    document["commit"] = commit();
    document["compiler"] = compiler();
    document["build"] = build_type();
    document["cuda"] = false;
    if (with_licences) document["licenses"] = licences_json();
    context.print_json(std::move(document));
    return 0;
  }
  context.print("hearth {} ({}, {}, {}, without CUDA)\n", kVersionText, commit(), build_type(), compiler());
  if (with_licences)
    for (const Licence& each : licences())
      context.print("{:<18} {:<8} {:<44} {}\n", each.name, each.version, each.licence, each.use);
  return 0;
}

}  // namespace

const Command kVersion = {
    .name = "version",
    .aliases = "",
    .summary = "version and build; --licenses",
    .details = "",
    .positionals = {},
    .flags = kFlags,
    .run = run,
    .settings = false,
};

}  // namespace hearth::cli
