#include "base/error.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/units.h"
#include "cpu/isa.h"
#include "probe/bench.h"
#include "probe/cpu_probe.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "WHAT", .help = "cpu: this machine's CPU and memory", .choices = "cpu"},
    {.name = "MODEL", .help = "adds a per-op table of its decode and prefill steps", .required = false},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "depth",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "128",
         .help = "positions in the cache before the step",
         .min = 1,
         .max = 1 << 24},
    Flag{
        .name = "bytes", .kind = ValueKind::size, .value = "SIZE", .help = "reads this working set alone, all threads"},
};
constexpr auto kFlags = joined(kOwnFlags, kModelFlags);
constexpr int64_t kMiB = 1 << 20;

struct Measured {
  double clock = 0;
  probe::TeamCost team;
  std::vector<probe::Peak> peaks;
  std::vector<probe::ReadRate> reads;
};

Measured measure(const Context& context, int threads) {
  Measured m;
  Team team(threads);
  if (const auto bytes = context.args().bytes("bytes")) {
    if (*bytes < kMiB) fail(ErrorKind::invalid_argument, "--bytes is {}, expected at least 1 MiB", *bytes);
    m.reads.push_back(probe::read_rate(team, threads, *bytes));
    return m;
  }
  m.clock = probe::clock_ghz();
  m.team = probe::team_cost(team);
  m.peaks = probe::peaks(team);
  for (const int64_t size : {8, 24, 48, 80, 128, 256, 512}) {
    for (int t = 1; t < threads; t *= 2) m.reads.push_back(probe::read_rate(team, t, size * kMiB, 7));
    m.reads.push_back(probe::read_rate(team, threads, size * kMiB, 7));
  }
  return m;
}

json::Array table_json(const probe::StepTable& table) {
  json::Array rows;
  for (const probe::StepRow& r : table.rows) {
    json::Object o;
    o["op"] = r.op;
    o["format"] = r.format;
    o["count"] = r.count;
    o["ms"] = r.ms;
    o["bytes"] = r.bytes;
    o["flops"] = r.flops;
    rows.emplace_back(std::move(o));
  }
  return rows;
}

void print_table(const Context& context, const char* title, const probe::StepTable& t, double read_gbps) {
  double ops_ms = 0;
  for (const probe::StepRow& r : t.rows) ops_ms += r.ms;
  context.print("{}: {:.2f} ms a step, {:.2f} ms by ops (medians of their own: waits for other work part them)\n",
                title, t.step_ms, ops_ms);
  size_t wide = std::string_view("format").size();
  for (const probe::StepRow& r : t.rows) wide = std::max(wide, r.format.size());
  context.print("  {:<22} {:<{}} {:>5} {:>9} {:>9} {:>8} {:>8} {:>7}\n", "op", "format", wide, "count", "ms", "bytes",
                "GB/s", "Gop/s", "of read");
  for (const probe::StepRow& r : t.rows) {
    const double gbps = r.ms > 0 ? static_cast<double>(r.bytes) / r.ms / 1e6 : 0;
    context.print("  {:<22} {:<{}} {:>5} {:>9.3f} {:>9} {:>8.1f} {:>8.1f} {:>6.0f}%\n", r.op, r.format, wide, r.count,
                  r.ms, show_size(r.bytes), gbps, r.ms > 0 ? static_cast<double>(r.flops) / r.ms / 1e6 : 0,
                  read_gbps > 0 ? 100 * gbps / read_gbps : 0);
  }
}

int run(Context& context) {
  const int threads = thread_count(context);
  const Measured m = measure(context, threads);
  const bool with_model = context.args().positional("MODEL").has_value();
  probe::StepTable decode_table, prefill_table;
  double model_read = 0;
  int64_t streamed = 0;  // by a decode step
  std::string model_name;
  if (with_model) {
    const int64_t depth = *context.args().integer("depth");
    const int64_t chunk = *context.args().integer("prefill-chunk");
    const LoadedModel loaded = load_model(context, {.needs_text = false, .context_wanted = depth + chunk});
    require_positions(loaded, depth + chunk, "--depth {} and --prefill-chunk {}", depth, chunk);
    model_name = loaded.found.name;
    decode_table = probe::step_table(*loaded.engine, 1, depth, 20);
    prefill_table = probe::step_table(*loaded.engine, chunk, depth, 3);
    for (const probe::StepRow& r : decode_table.rows) streamed += r.bytes;
    Team team(threads);
    model_read = probe::read_rate(team, threads, std::max<int64_t>(kMiB, streamed / 4096 * 4096)).gbps;
  }

  if (context.json()) {
    json::Object d;
    d["isa"] = name_of(cpu::best_isa());
    d["threads"] = threads;
    if (m.clock > 0) {
      d["clock_ghz"] = m.clock;
      d["barrier_ns"] = m.team.barrier_ns;
      d["fork_join_ns"] = m.team.fork_join_ns;
      json::Array peaks;
      for (const probe::Peak& p : m.peaks) {
        json::Object o;
        o["name"] = p.name;
        o["gops_core"] = p.gops_core;
        o["gops_all"] = p.gops_all;
        peaks.emplace_back(std::move(o));
      }
      d["peaks"] = std::move(peaks);
    }
    json::Array reads;
    for (const probe::ReadRate& r : m.reads) {
      json::Object o;
      o["threads"] = r.threads;
      o["bytes"] = r.bytes;
      o["gbps"] = r.gbps;
      o["spread"] = r.spread;
      reads.emplace_back(std::move(o));
    }
    d["read"] = std::move(reads);
    if (with_model) {
      d["model"] = model_name;
      d["model_read_gbps"] = model_read;
      d["decode_step_ms"] = decode_table.step_ms;
      d["decode"] = table_json(decode_table);
      d["prefill_step_ms"] = prefill_table.step_ms;
      d["prefill"] = table_json(prefill_table);
    }
    context.print_json(std::move(d));
    return 0;
  }
  if (m.clock > 0) {
    context.print("clock {:.2f} GHz, kernels {}, {} threads; barrier {:.0f} ns, fork and join {:.0f} ns\n", m.clock,
                  name_of(cpu::best_isa()), threads, m.team.barrier_ns, m.team.fork_join_ns);
    for (const probe::Peak& p : m.peaks)
      context.print("  {:<30} {:>7.0f} Gop/s a core, {:>7.0f} together\n", p.name, p.gops_core, p.gops_all);
  }
  for (const probe::ReadRate& r : m.reads)
    context.print("  read {:>8} on {} thread{}  {:6.1f} GB/s (spread {:.0f} %)\n", show_size(r.bytes), r.threads,
                  r.threads == 1 ? " " : "s", r.gbps, 100 * r.spread);
  if (m.clock > 0 && !m.reads.empty())  // the last one: the largest set on all threads
    context.print("  a token of a model with 1 GB of weights takes {:.0f} ms at least: {:.0f} tok/s of decode\n",
                  1000 / m.reads.back().gbps, m.reads.back().gbps);
  if (with_model) {
    context.print("{}: plain read of a token's bytes {:.1f} GB/s; ops above 100 % of it read from caches\n", model_name,
                  model_read);
    print_table(context, "decode step, M = 1", decode_table, model_read);
    const auto bytes = static_cast<double>(streamed);
    context.print("  all of it: {} a step, which a plain read takes {:.2f} ms for: the step is at {:.0f} %\n",
                  show_size(streamed), bytes / model_read / 1e6, 100 * bytes / model_read / 1e6 / decode_table.step_ms);
    print_table(context, "prefill step", prefill_table, model_read);
  }
  return 0;
}

}  // namespace

const Command kProbe = {
    .name = "probe",
    .aliases = "",
    .summary = "what this machine gives, and where a step's time goes",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
