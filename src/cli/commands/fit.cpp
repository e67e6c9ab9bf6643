#include "base/error.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/units.h"
#include "decode/memory.h"

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
};
constexpr auto kFlags = joined(kOwnFlags, kEngineFlags);

int run(Context& context) {
  const hub::FoundModel found = find_model(context);
  const std::unique_ptr<model::Model> model = model::Model::open(found.path);
  const decode::EngineOptions options = engine_options(context);
  const std::unique_ptr<graph::Executor> executor = make_executor(context, *model);
  const decode::MemoryPlan memory(*model, *executor, options);
  const int64_t trained = model->spec().context;
  const int64_t ctx = context.args().integer("ctx").value_or(options.context > 0 ? options.context : trained);
  const int64_t budget = options.memory_budget;
  const decode::MemoryNeed need = memory.at(ctx);
  const int64_t largest = memory.largest(budget);
  const bool fits = ctx <= largest && ctx <= trained;
  if (context.json()) {
    json::Object d;
    d["model"] = found.name;
    d["context"] = ctx;
    d["fits"] = fits;
    d["need_bytes"] = need.total();
    d["weights_bytes"] = need.weights;
    d["kv_bytes"] = need.kv;
    d["arena_bytes"] = need.arena;
    d["logits_bytes"] = need.logits;
    d["loading_bytes"] = need.loading;
    d["process_bytes"] = need.process;
    d["budget_bytes"] = budget;
    d["largest_context"] = largest;
    d["trained_context"] = trained;
    context.print_json(std::move(d));
  } else {
    const int64_t working = need.arena + need.logits;
    const std::string running = fmt::format("KV cache {}, working memory {}", show_size(need.kv), show_size(working));
    const bool loading_counts = need.loading > need.kv + working;
    context.print("{}: {} positions need {} (the program {}, weights {}, {})\n", found.name, ctx,
                  show_size(need.total()), show_size(need.process), show_size(need.weights),
                  loading_counts
                      ? fmt::format("repacking at load {}, of which later {}", show_size(need.loading), running)
                      : running);
    if (fits)
      context.print("{} the budget of {}; up to {} positions do\n", context.green("fits"), show_size(budget), largest);
    else if (ctx > trained)
      context.print("{}: the model was trained for {} positions\n", context.red("does not fit"), trained);
    else
      context.print("{} the budget of {}; up to {} positions do\n", context.red("does not fit"), show_size(budget),
                    largest);
  }
  return fits ? 0 : exit_code(ErrorKind::out_of_memory);
}

}  // namespace

const Command kFit = {
    .name = "fit",
    .aliases = "",
    .summary = "whether a model and a context fit this machine",
    .details = "Exit 0 when it fits, 4 when it does not.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
