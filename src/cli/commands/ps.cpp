#include "base/error.h"
#include "cli/commands.h"
#include "cli/server_client.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

int run(Context& context) {
  const json::Value document = ask_server(context, "GET", "/api/ps", {});
  if (context.json()) {
    context.print_json(*document.object());
    return 0;
  }
  const json::Array& models = document.get("models")->as_array("models");
  if (models.size() == 0) context.note("no model is loaded");
  for (const json::Value& m : models) {
    const json::Value* bytes = m.get("memory_bytes");
    context.print("{}  {}{}  {} open{}\n", *m.get("model")->string(), *m.get("state")->string(),
                  m.get("pinned")->as_bool("pinned") ? ", pinned" : "", m.get("open_requests")->as_int("open_requests"),
                  bytes && bytes->is_int() ? ", " + show_size(bytes->as_int("")) : "");
  }
  return 0;
}

}  // namespace

const Command kPs = {
    .name = "ps",
    .aliases = "",
    .summary = "the models that the server has loaded",
    .details = "",
    .positionals = {},
    .flags = {},
    .run = run,
};

}  // namespace hearth::cli
