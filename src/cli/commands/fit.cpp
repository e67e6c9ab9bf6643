#include "base/error.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/fit_report.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "ctx",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "positions that must fit (default: as trained)",
         .min = 1,
         .max = 1 << 28},
    Flag{.name = "skus", .help = "also which cards and hosts would hold it"},
};
constexpr auto kFlags = joined(kOwnFlags, kEngineFlags);

int64_t whole(const json::Value& from, const char* key) { return from.get(key)->as_int(key); }
std::string size(const json::Value& from, const char* key) { return show_size(whole(from, key)); }

void print_need(const Context& context, const std::string& name, const json::Value& d) {
  const json::Value& report = *d.get("report");
  const int64_t working = whole(report, "arena_bytes") + whole(report, "logits_bytes");
  const std::string running =
      fmt::format("KV cache {}, working memory {}", size(report, "kv_bytes"), show_size(working));
  const bool loading_counts = whole(report, "loading_bytes") > whole(report, "kv_bytes") + working;
  context.print("{}: {} positions need {} (the program {}, weights {}, {})\n", name, whole(d, "context_tokens"),
                size(report, "total_bytes"), size(report, "process_bytes"), size(report, "weights_bytes"),
                loading_counts
                    ? fmt::format("repacking at load {}, of which later {}", size(report, "loading_bytes"), running)
                    : running);
  const int64_t largest = whole(report, "max_safe_context"), trained = whole(report, "trained_context");
  if (report.get("fits")->as_bool("fits"))
    context.print("{} the budget of {}; up to {} positions do\n", context.green("fits"), size(report, "usable_bytes"),
                  largest);
  else if (whole(d, "context_tokens") > trained)
    context.print("{}: the model was trained for {} positions\n", context.red("does not fit"), trained);
  else
    context.print("{} the budget of {}; up to {} positions do\n", context.red("does not fit"),
                  size(report, "usable_bytes"), largest);
}

void print_speed(const Context& context, const json::Value& d) {
  const json::Value* typical = d.get("typical_decode_tps");
  if (!typical) return;  // it writes no text, or nothing is known
  const double tps = typical->as_double("typical_decode_tps");
  if (const json::Value* at = d.get("measured_at"))
    context.print("{:.1f} tok/s at {} positions, by what hearth bench measured on {}: {:.1f} tok/s\n", tps,
                  whole(d, "typical_context_tokens"), at->as_string("measured_at").substr(0, 10),
                  d.get("measured_decode_tps")->as_double("measured_decode_tps"));
  else
    context.print("about {:.1f} tok/s at {} positions, by this memory's {:.1f} GB/s; hearth bench measures it\n", tps,
                  whole(d, "typical_context_tokens"), d.get("machine")->get("ram_gbs")->as_double("ram_gbs"));
}

void print_skus(const Context& context, const json::Value& d) {
  context.print("{} positions on other machines:\n", whole(d, "sku_matrix_ctx"));
  context.print("  {:<5} {:>6} {:>7} {:>8}  {:<4} {}\n", "kind", "memory", "usable", "needed", "fits", "positions");
  for (const json::Value& row : d.get("sku_matrix")->as_array("sku_matrix"))
    context.print("  {:<5} {:>6} {:>7} {:>8}  {:<4} {}\n", row.get("kind")->as_string("kind"),
                  size(row, "memory_bytes"), size(row, "usable_bytes"), size(row, "needed_bytes"),
                  row.get("fits")->as_bool("fits") ? "yes" : "no", whole(row, "max_safe_context"));
}

int run(Context& context) {
  const hub::FoundModel found = find_model(context);
  const std::unique_ptr<model::Model> model = model::Model::open(found.path);
  json::Object document;
  document["model"] = found.name;
  for (auto& [key, value] : fit_document(
           context, *model, {.positions = context.args().integer("ctx"), .ram_gbs = memory_gbs(thread_count(context))}))
    document[key] = value;
  const json::Value d = std::move(document);
  const bool fits = d.get("report")->get("fits")->as_bool("fits");
  if (context.json()) {
    context.print_json(*d.object());
  } else {
    print_need(context, found.name, d);
    print_speed(context, d);
    if (context.args().on("skus")) print_skus(context, d);
  }
  return fits ? 0 : exit_code(ErrorKind::out_of_memory);
}

}  // namespace

const Command kFit = {
    .name = "fit",
    .aliases = "",
    .summary = "whether a model and a context fit this machine",
    .details =
        "Exit 0 when it fits, 4 when it does not. --json prints what GET /fit of a server\n"
        "answers, with the other machines.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
