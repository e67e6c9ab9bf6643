#include "probe/bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/progress.h"
#include "cli/rates.h"
#include "cli/roofline.h"
#include "cli/units.h"
#include "probe/cpu_probe.h"
#include "probe/streams.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "prompt",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "512",
         .help = "prompt tokens; 0: no prefill",
         .aliases = "--prompt-tokens",
         .min = 0,
         .max = 1 << 24},
    Flag{.name = "tokens",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "64",
         .help = "answer tokens; 0: no decode",
         .min = 0,
         .max = 1 << 24},
    Flag{.name = "runs",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "5",
         .help = "counted runs behind one warm-up",
         .min = 1,
         .max = 1000},
    Flag{.name = "depth",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "128",
         .help = "positions in the cache before the answer",
         .min = 1,
         .max = 1 << 24},
    Flag{.name = "parallel",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "N requests at once, each with a prompt of its own, instead of one after the other",
         .min = 1,
         .max = 1024},
    Flag{.name = "temperature",
         .kind = ValueKind::number,
         .value = "T",
         .fallback = "0",
         .help = "of the answers of --parallel; 0 takes the likeliest token",
         .aliases = "--temp",
         .min = 0,
         .max = 100},
};
constexpr auto kFlags = joined(kOwnFlags, kModelFlags);

json::Object series_json(const probe::BenchSeries& s) {
  json::Object o;
  o["median"] = s.median;
  o["p10"] = s.p10;
  o["p90"] = s.p90;
  json::Array runs;
  for (const double v : s.tps) runs.emplace_back(v);
  o["runs"] = std::move(runs);
  return o;
}

// What was measured, for both kinds of run.
json::Object subject_json(const Context& context, const LoadedModel& loaded) {
  json::Object d;
  d["model"] = loaded.found.name;
  if (!loaded.adapter.empty()) d["adapter"] = loaded.adapter;
  d["executor"] = loaded.engine->executor().info().name;
  d["numerics"] = name_of(loaded.engine->options().numerics);
  d["threads"] = thread_count(context);
  return d;
}
void print_subject(const Context& context, const LoadedModel& loaded) {
  const std::string adapter = loaded.adapter.empty() ? "" : fmt::format(" with adapter {}", loaded.adapter);
  context.print("{}{} on {}, {}\n", loaded.found.name, adapter, loaded.engine->executor().info().name,
                name_of(loaded.engine->options().numerics));
}

int run_streams(Context& context, int64_t streams) {
  const Args& args = context.args();
  const probe::StreamsOptions options{.streams = streams,
                                      .prompt_tokens = std::max<int64_t>(1, *args.integer("prompt")),
                                      .tokens = std::max<int64_t>(1, *args.integer("tokens")),
                                      .runs = *args.integer("runs"),
                                      .temperature = *args.number("temperature")};
  const LoadedModel loaded = load_model(context, {.gathered_max = streams,
                                                  .sequences_max = streams,
                                                  .needs_text = false,
                                                  .context_wanted = options.prompt_tokens + options.tokens});
  require_positions(loaded, options.prompt_tokens + options.tokens - 1, "--prompt {} and --tokens {}",
                    options.prompt_tokens, options.tokens);
  Progress progress(context, "bench", Progress::Unit::count);
  const probe::StreamsResult r =
      probe::streams(*loaded.engine, options, [&](int64_t done, int64_t total) { progress.show(done, total); });
  if (context.json()) {
    json::Object d = subject_json(context, loaded);
    d["parallel"] = streams;
    d["prompt_tokens"] = options.prompt_tokens;
    d["tokens"] = options.tokens;
    d["tps"] = series_json(r.tps);
    d["first_ms"] = series_json(r.first_ms);
    d["first_ms_worst"] = series_json(r.first_ms_worst);
    d["between_ms"] = series_json(r.between_ms);
    d["between_ms_p99"] = series_json(r.between_ms_p99);
    d["temperature"] = options.temperature;
    d["sampling_share"] = series_json(r.sampling_share);
    d["load_ms"] = loaded.times.total;
    d["peak_rss_bytes"] = peak_rss_bytes();
    context.print_json(std::move(d));
    return 0;
  }
  print_subject(context, loaded);
  context.print("  {} streams, {} + {} tokens each  {:9.1f} tok/s of answers\n", streams, options.prompt_tokens,
                options.tokens, r.tps.median);
  context.print("  first token {:.0f} ms (last stream {:.0f}), between tokens {:.1f} ms (p99 {:.1f})\n",
                r.first_ms.median, r.first_ms_worst.median, r.between_ms.median, r.between_ms_p99.median);
  context.print("  sampling {:.1f} % of a step\n", 100 * r.sampling_share.median);
  context.print("  load {:.0f} ms, peak memory {}\n", loaded.times.total, show_size(peak_rss_bytes()));
  return 0;
}

// For `hearth fit` and the server. An adapter's speed is not the model's.
void keep(const Context& context, const LoadedModel& loaded, const probe::BenchOptions& options, double decode_tps) {
  if (options.tokens == 0 || !loaded.adapter.empty()) return;
  const std::optional<std::string> key =
      rate_key(loaded.engine->model(), loaded.engine->executor(), loaded.engine->options());
  if (!key) return;
  try {
    keep_rate(context.env(), *key,
              {.decode_tps = decode_tps,
               .positions = options.depth + options.tokens / 2,
               .measured_at = iso8601(system_clock().wall())});
  } catch (const Error& error) {
    context.warn("hearth fit will not know this speed: {}", error.what());
  }
}

// How near the model comes to what the machine gives at best.
struct Nearness {
  Roofline roofline;
  std::optional<double> decode, prefill;  // 1: as fast as that
};

std::optional<Nearness> nearness(const Context& context, const probe::BenchResult& r, double gbps, double gops) {
  if (*context.args().text("executor") == "reference") return std::nullopt;  // slow on purpose
  const int64_t bytes = r.streamed_bytes + r.kv_bytes;
  Nearness near{.roofline = measure_roofline(thread_count(context), bytes), .decode = {}, .prefill = {}};
  if (gbps > 0) near.decode = gbps / near.roofline.read_gbps;
  if (gops > 0 && near.roofline.peak_gops > 0) near.prefill = gops / near.roofline.peak_gops;
  return near;
}

json::Object nearness_json(const Nearness& near) {
  json::Object o;
  o["read_gbps"] = near.roofline.read_gbps;
  o["decode_share"] = near.decode ? json::Value(*near.decode) : json::Value();
  o["peak"] = near.roofline.peak;
  o["peak_gops"] = near.roofline.peak_gops;
  o["prefill_share"] = near.prefill ? json::Value(*near.prefill) : json::Value();
  return o;
}

void print_nearness(const Context& context, const Nearness& near) {
  if (near.prefill)
    context.print("  prefill is at {:.0f} % of {:.0f} Gop/s, what {} gives from registers\n", 100 * *near.prefill,
                  near.roofline.peak_gops, near.roofline.peak);
  if (near.decode)
    context.print("  decode is at {:.0f} % of {:.1f} GB/s, a plain read of as many bytes\n", 100 * *near.decode,
                  near.roofline.read_gbps);
}

int run(Context& context) {
  if (const auto streams = context.args().integer("parallel")) return run_streams(context, *streams);
  const Args& args = context.args();
  const probe::BenchOptions options{.prompt_tokens = *args.integer("prompt"),
                                    .tokens = *args.integer("tokens"),
                                    .runs = *args.integer("runs"),
                                    .depth = *args.integer("depth")};
  if (options.prompt_tokens == 0 && options.tokens == 0)
    fail(ErrorKind::invalid_argument, "--prompt 0 and --tokens 0 leave nothing to measure");
  const int64_t positions = std::max(options.prompt_tokens, options.depth + options.tokens);
  const LoadedModel loaded = load_model(context, {.needs_text = false, .context_wanted = positions});
  require_positions(loaded, options.prompt_tokens, "--prompt {}", options.prompt_tokens);
  require_positions(loaded, options.depth + options.tokens, "--depth {} and --tokens {}", options.depth,
                    options.tokens);
  Progress progress(context, "bench", Progress::Unit::count);
  const probe::BenchResult r =
      probe::bench(*loaded.engine, options, [&](int64_t done, int64_t total) { progress.show(done, total); });
  keep(context, loaded, options, r.decode.median);
  const double gbps = r.decode.median * static_cast<double>(r.streamed_bytes + r.kv_bytes) / 1e9;
  const double gops = r.prefill.median * static_cast<double>(r.flops_token) / 1e9;
  const int64_t peak_rss = peak_rss_bytes();
  const std::optional<Nearness> near = nearness(context, r, gbps, gops);
  if (context.json()) {
    json::Object d = subject_json(context, loaded);
    d["prompt_tokens"] = options.prompt_tokens;
    d["tokens"] = options.tokens;
    d["depth"] = options.depth;
    d["prefill_tps"] = series_json(r.prefill);
    d["decode_tps"] = series_json(r.decode);
    d["streamed_bytes_per_token"] = r.streamed_bytes;
    d["kv_bytes_per_token"] = r.kv_bytes;
    d["decode_gbps"] = gbps;
    d["prefill_gops"] = gops;
    d["limits"] = near ? json::Value(nearness_json(*near)) : json::Value();
    d["load_ms"] = loaded.times.total;
    d["load"] = times_json(loaded.times);
    d["peak_rss_bytes"] = peak_rss;
    context.print_json(std::move(d));
    return 0;
  }
  const auto spread = [](const probe::BenchSeries& s) {  // one run has none
    return s.tps.size() > 1 ? fmt::format("spread {:.1f} %, ", 100 * (s.p90 - s.p10) / s.median) : std::string();
  };
  print_subject(context, loaded);
  if (options.prompt_tokens > 0)
    context.print("  prefill {:>5} tokens  {:9.1f} tok/s  ({}{:.0f} Gop/s)\n", options.prompt_tokens, r.prefill.median,
                  spread(r.prefill), gops);
  if (options.tokens > 0)
    context.print("  decode  {:>5} tokens  {:9.1f} tok/s  ({}{:.1f} GB/s of weights and KV)\n", options.tokens,
                  r.decode.median, spread(r.decode), gbps);
  if (near) print_nearness(context, *near);
  context.print("  load {:.0f} ms, peak memory {}\n", loaded.times.total, show_size(peak_rss));
  return 0;
}

}  // namespace

const Command kBench = {
    .name = "bench",
    .aliases = "",
    .summary = "prefill and decode speed of a model",
    .details =
        "llama-bench calls them pp512 and tg64. Both are compared with what this machine\n"
        "gives at best: decode with a plain read of the bytes that a token takes, prefill\n"
        "with dot products from registers.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
