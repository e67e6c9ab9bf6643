#include "cli/stats_json.h"

#include "cli/engine_flags.h"
#include "cli/units.h"

namespace hearth::cli {

json::Object stats_json(const decode::GenerateStats& stats, double load_ms) {
  json::Object o;
  o["prompt_tokens"] = stats.prompt_tokens;
  o["cached_tokens"] = stats.cached_tokens;
  o["generated_tokens"] = stats.generated_tokens;
  o["load_ms"] = load_ms;
  o["ttft_ms"] = stats.ttft_ms;
  o["prefill_ms"] = stats.prefill_ms;
  o["decode_ms"] = stats.decode_ms;
  o["prefill_tps"] = stats.prefill_tps();
  o["decode_tps"] = stats.decode_tps();
  o["peak_rss_bytes"] = peak_rss_bytes();
  return o;
}

std::string stats_line(const decode::GenerateStats& stats, double load_ms) {
  return fmt::format(
      "load {:.0f} ms; prompt {} tokens ({} cached), {:.1f} tok/s; answer {} tokens, {:.1f} tok/s; peak {}", load_ms,
      stats.prompt_tokens, stats.cached_tokens, stats.prefill_tps(), stats.generated_tokens, stats.decode_tps(),
      show_size(peak_rss_bytes()));
}

}  // namespace hearth::cli
