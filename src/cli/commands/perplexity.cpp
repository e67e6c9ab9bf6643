#include "eval/perplexity.h"

#include "cli/commands.h"
#include "cli/data_flag.h"
#include "cli/engine_flags.h"
#include "cli/progress.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
};
constexpr std::array kOwnFlags = {
    kDataFlag,
    Flag{.name = "method",
         .kind = ValueKind::choice,
         .value = "mlx|llama",
         .fallback = "mlx",
         .help = "rows of 512 in mlx_lm's order, or llama.cpp's scored half windows"},
    Flag{.name = "rows",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "256",
         .help = "rows of 512 tokens at most",
         .min = 1,
         .max = 1e6},
};
constexpr auto kFlags = joined(kOwnFlags, kModelFlags);

int run(Context& context) {
  const std::vector<std::string> documents = read_data(context);
  eval::PerplexityOptions options;
  options.rows_max = *context.args().integer("rows");
  if (*context.args().text("method") == "llama") options.method = eval::PerplexityMethod::llama;
  std::vector<int32_t> ids;
  const LoadedModel loaded = load_model(context, {.gathered_max = 64,
                                                  .context_wanted = options.row,
                                                  .first = [&](const std::string&, const model::ModelText& text) {
                                                    ids = eval::perplexity_ids(text.tokenizer(), documents, options);
                                                  }});
  Progress progress(context, "perplexity", Progress::Unit::count);
  const eval::Perplexity p = eval::perplexity(*loaded.engine, loaded.text->tokenizer(), ids, options,
                                              [&](int64_t done, int64_t total) { progress.show(done, total); });
  if (context.json()) {
    json::Object document;
    document["model"] = loaded.found.name;
    document["perplexity"] = p.value;
    document["standard_error"] = p.standard_error ? json::Value(*p.standard_error) : json::Value();
    document["mean_nats"] = p.mean_nats;
    document["bits_per_byte"] = p.bits_per_byte;
    document["tokens"] = p.tokens;
    document["rows"] = p.rows;
    document["method"] = *context.args().text("method");
    context.print_json(std::move(document));
  } else {
    context.print("perplexity {:.4f}{}  ({} tokens in {} row{}, {:.4f} bits per byte)\n", p.value,
                  p.standard_error ? fmt::format(" +- {:.4f}", *p.standard_error) : "", p.tokens, p.rows,
                  p.rows == 1 ? "" : "s", p.bits_per_byte);
  }
  return 0;
}

}  // namespace

const Command kPerplexity = {
    .name = "perplexity",
    .aliases = "ppl",
    .summary = "perplexity of a text under a model",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
