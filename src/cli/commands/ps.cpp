#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/server_client.h"
#include "cli/text_width.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

constexpr auto kFiguresWithin = std::chrono::seconds(5);  // an engine in a long step answers behind it

using Row = std::array<std::string, 9>;
constexpr std::array<std::string_view, 9> kTitles = {"MODEL",    "STATE", "SIZE",   "DEVICE",  "CONTEXT",
                                                     "REQUESTS", "TOK/S", "UNLOAD", "RESTARTS"};
constexpr std::array<bool, 9> kRight = {false, false, true, false, true, false, true, false, true};

std::optional<int64_t> whole(const json::Value& model, const char* key) {
  const json::Value* value = model.get(key);
  return value && value->is_int() ? std::optional(value->as_int(key)) : std::nullopt;
}

std::string word(const json::Value& model, const char* key) {
  const json::Value* value = model.get(key);
  return value && value->string() ? *value->string() : "-";
}

std::string requests(const json::Value& model) {
  const int64_t running = whole(model, "running").value_or(0), waiting = whole(model, "waiting").value_or(0);
  if (running + waiting == 0) return "idle";
  return fmt::format("{} running{}", running, waiting > 0 ? fmt::format(", {} waiting", waiting) : "");
}

std::string show_rate(double tps) { return tps < 99.95 ? fmt::format("{:.1f}", tps) : fmt::format("{:.0f}", tps); }

std::string unload(const json::Value& model) {
  if (const json::Value* pinned = model.get("pinned"); pinned && pinned->is_bool() && pinned->as_bool("pinned"))
    return "never";
  const std::optional<int64_t> ms = whole(model, "unload_in_ms");
  if (!ms) return word(model, "state") == "ready" ? "never" : "-";
  return "in " + show_duration(static_cast<double>(*ms) / 1000);
}

Row row_of(const json::Value& model) {
  const auto size = whole(model, "memory_bytes");
  const auto context = whole(model, "context_window");
  const json::Value* rate = model.get("tokens_per_second");
  return {printable(word(model, "model"), kSentenceBytesMax),
          word(model, "state"),
          size ? show_size(*size) : "-",
          word(model, "executor"),
          context ? std::to_string(*context) : "-",
          requests(model),
          rate && rate->is_number() ? show_rate(rate->as_double("tokens_per_second")) : "-",
          unload(model),
          std::to_string(whole(model, "restarts").value_or(0))};
}

std::string line_of(const Row& row, const std::array<size_t, 9>& widths) {
  std::string line;
  for (size_t c = 0; c < row.size(); ++c)
    line += fmt::format(fmt::runtime(kRight[c] ? "{:>{}}  " : "{:<{}}  "), row[c], widths[c]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void print_table(Context& context, const json::Array& models) {
  std::vector<Row> rows;
  Row titles;
  std::copy(kTitles.begin(), kTitles.end(), titles.begin());
  rows.push_back(titles);
  for (const json::Value& model : models) rows.push_back(row_of(model));
  std::array<size_t, 9> widths{};
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], static_cast<size_t>(width_of(row[c])));
  context.print("{}\n", context.bold(line_of(rows[0], widths)));
  for (size_t r = 1; r < rows.size(); ++r) context.print("{}\n", line_of(rows[r], widths));
}

// The figures of the engine, as GET /stats has them; null when it is too busy to say.
json::Value figures(const Context& context, const server::InstanceInfo& instance) {
  try {
    const net::ClientResponse response =
        call_server(instance, "GET", "/stats", instance.token, {}, {.idle = kFiguresWithin});
    if (response.status == 200) return json::parse(response.body, "the server's answer");
    context.warn("the server's figures are missing: status {}", response.status);
  } catch (const Error& error) {
    context.warn("the server's figures are missing: {}", error.what());
  }
  return {};
}

int run(Context& context) {
  const server::InstanceInfo instance = running_server(context);
  const json::Value document = ask_server(context, "GET", "/api/ps", {});
  if (context.json()) {
    json::Object all, server;
    server["url"] = instance.url;
    server["pid"] = static_cast<int64_t>(instance.pid);
    all["server"] = std::move(server);
    for (const auto& [key, value] : document.object()->members) all[key] = value;
    all["stats"] = figures(context, instance);
    context.print_json(std::move(all));
    return 0;
  }
  context.note("the server is at {} (process {})", instance.url, instance.pid);
  const json::Array& models = document.get("models")->as_array("models");
  if (models.empty()) context.note("no model is loaded");
  else print_table(context, models);
  context.flush_out();
  for (const json::Value& model : models)
    if (const json::Value* problem = model.get("problem"); problem && problem->string())
      context.warn("{}: {}", word(model, "model"), *problem->string());
  return 0;
}

}  // namespace

const Command kPs = {
    .name = "ps",
    .aliases = "",
    .summary = "the models that the server has loaded",
    .details =
        "REQUESTS counts those that the engine has begun, and those that wait for it or\n"
        "for the load. TOK/S is the speed of the answers that ended in the last minute,\n"
        "all together, while at least one was under way. UNLOAD says when the model goes\n"
        "if nobody asks. --json adds the figures of GET /stats.",
    .positionals = {},
    .flags = {},
    .run = run,
};

}  // namespace hearth::cli
