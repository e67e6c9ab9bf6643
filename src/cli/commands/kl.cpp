#include "eval/kl.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/data_flag.h"
#include "cli/engine_flags.h"
#include "cli/progress.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL_A", .help = "the source: p of KL(p || r)"},
    {.name = "MODEL_B", .help = "the model that is judged: r"},
};
constexpr std::array kOwnFlags = {
    kDataFlag,
    Flag{.name = "windows",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "64",
         .help = "windows at most",
         .min = 1,
         .max = 1e6},
    Flag{.name = "window",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "256",
         .help = "tokens of a window",
         .min = 2,
         .max = 1e5},
    Flag{.name = "a-executor",
         .kind = ValueKind::choice,
         .value = "cpu|reference",
         .help = "executor of the source alone"},
    Flag{.name = "a-numerics",
         .kind = ValueKind::choice,
         .value = "parity|deterministic|fast",
         .help = "numerics of the source alone"},
    Flag{.name = "a-kv", .kind = ValueKind::choice, .value = kKvWords, .help = "KV format of the source alone"},
    Flag{.name = "a-adapter",
         .kind = ValueKind::file,
         .value = "DIR",
         .help = "adapter of the source alone; none: the model as it is"},
};
constexpr auto kFlags = joined(kOwnFlags, kModelFlags);

// KL compares token by token: one text must be the same tokens to both, whatever each puts around it.
void require_same_tokens(const LoadedModel& a, const std::string& b, const model::ModelText& b_text,
                         const std::string& text) {
  constexpr text::EncodeOptions kPlain{.parse_special = false, .add_special = false};
  const std::vector<int32_t> ids = a.text->tokenizer().encode(text, kPlain),
                             others = b_text.tokenizer().encode(text, kPlain);
  const auto [left, right] = std::mismatch(ids.begin(), ids.end(), others.begin(), others.end());
  if (left == ids.end() && right == others.end()) return;
  fail(ErrorKind::invalid_argument, "the tokenizers of {} and {} differ from token {} of the text on", a.found.name, b,
       left - ids.begin());
}

// What tells the sides apart where the model does not: the engine flags of which the source has its own.
struct Sides {
  std::string a, b;
};
Sides settings_that_differ(const Args& args) {
  Sides sides;
  for (const char* flag : {"executor", "numerics", "kv", "adapter"}) {
    const auto own = args.text(std::string("a-") + flag);
    const std::string common = args.text(flag).value_or("none");
    if (!own || *own == common) continue;
    for (auto& [side, value] : {std::pair{&sides.a, *own}, std::pair{&sides.b, common}})
      *side += fmt::format("{}{} {}", side->empty() ? "" : ", ", flag, value);
  }
  return sides;
}

int run(Context& context) {
  const Args& args = context.args();
  const std::vector<std::string> documents = read_data(context);
  eval::KlOptions options;
  options.windows_max = *args.integer("windows");
  options.window = *args.integer("window");
  LoadRequest request{.positional = "MODEL_A", .gathered_max = 64, .context_wanted = options.window};
  const LoadedModel a = load_model(context, request,
                                   {.executor = args.text("a-executor"),
                                    .numerics = args.text("a-numerics"),
                                    .kv = args.text("a-kv"),
                                    .adapter = args.text("a-adapter")});
  std::vector<int32_t> ids;
  request.positional = "MODEL_B";
  request.first = [&](const std::string& name, const model::ModelText& text) {
    for (const std::string& d : documents) {
      require_same_tokens(a, name, text, d);
      const std::vector<int32_t> more = a.text->encode_text(d);
      ids.insert(ids.end(), more.begin(), more.end());
      if (std::cmp_greater_equal(ids.size(), options.window * options.windows_max)) break;
    }
  };
  const LoadedModel b = load_model(context, request, {.memory_taken = a.engine->need().total()});
  Sides sides{a.found.name, b.found.name};
  if (a.found.path == b.found.path) {
    if (const Sides settings = settings_that_differ(args); !settings.a.empty())
      sides = {fmt::format("{}, {}", a.found.name, settings.a), settings.b};
    else
      context.warn(
          "both sides are {} with the same settings; --a-numerics, --a-kv, --a-executor or --a-adapter set the source "
          "apart",
          a.found.name);
  }
  Progress progress(context, "kl", Progress::Unit::count);
  const eval::KlResult r =
      eval::kl(*a.engine, *b.engine, ids, options, [&](int64_t done, int64_t total) { progress.show(done, total); });
  if (context.json()) {
    json::Object document;
    document["model_a"] = a.found.name;
    document["model_b"] = b.found.name;
    document["kl_mean"] = r.mean;
    document["kl_median"] = r.median;
    document["kl_p95"] = r.p95;
    document["kl_p99"] = r.p99;
    document["kl_max"] = r.max;
    document["top1_agreement"] = r.top1;
    document["perplexity_a"] = r.perplexity_a;
    document["perplexity_b"] = r.perplexity_b;
    document["positions"] = r.positions;
    document["windows"] = r.windows;
    json::Array worst;
    for (const eval::KlResult::Worst& w : r.worst) {
      json::Object o;
      o["window"] = w.window;
      o["position"] = w.position;
      o["kl"] = w.kl;
      worst.emplace_back(std::move(o));
    }
    document["worst"] = std::move(worst);
    context.print_json(std::move(document));
  } else {
    context.print("KL({} || {}) over {} positions in {} windows\n", sides.a, sides.b, r.positions, r.windows);
    context.print("  mean {:.3e}  median {:.3e}  p95 {:.3e}  p99 {:.3e}  max {:.3e} nats\n", r.mean, r.median, r.p95,
                  r.p99, r.max);
    context.print("  same top token {:.2f} %   perplexity {:.4f} and {:.4f}\n", 100 * r.top1, r.perplexity_a,
                  r.perplexity_b);
  }
  if (r.mean > 0.1 || r.top1 < 0.9)
    context.warn("the models differ widely: mean KL {:.3f} nats, same top token {:.1f} %", r.mean, 100 * r.top1);
  return 0;
}

}  // namespace

const Command kKl = {
    .name = "kl",
    .aliases = "",
    .summary = "KL divergence between two models on a text",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
