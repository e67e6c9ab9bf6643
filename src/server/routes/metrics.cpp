// GET /metrics: Prometheus text format 0.0.4. No texts, no keys.
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {
namespace {

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP hearth_{} {}\n# TYPE hearth_{} {}\n", name, help, name, type);
  }
  template <class Number>
  void value(std::string_view name, Number number, std::string_view labels = "") {
    text_ += fmt::format("hearth_{}{} {}\n", name, labels, number);
  }
  void histogram(std::string_view name, const Counters::Histogram& h) {
    int64_t below = 0;
    for (size_t i = 0; i < std::size(Counters::Histogram::kBounds); ++i) {
      below += h.buckets[i];
      value(fmt::format("{}_bucket", name), below, fmt::format("{{le=\"{}\"}}", Counters::Histogram::kBounds[i]));
    }
    value(fmt::format("{}_bucket", name), h.count, "{le=\"+Inf\"}");
    value(fmt::format("{}_sum", name), h.sum);
    value(fmt::format("{}_count", name), h.count);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string render(Services& services, const json::Value& rows) {
  Counters& c = services.counters;
  const auto row = [&](const char* key) {
    const json::Value* value = rows.get(key);
    return value && value->is_int() ? value->as_int(key) : 0;
  };
  Text t;
  {
    const std::lock_guard lock(c.mutex);
    t.family("requests_total", "counter", "requests by route and status");
    for (const auto& [key, n] : c.requests)
      t.value("requests_total", n, fmt::format("{{route=\"{}\",code=\"{}\"}}", key.first, key.second));
    t.family("ttft_seconds", "histogram", "from the request to the first token");
    t.histogram("ttft_seconds", c.ttft);
    t.family("inter_token_seconds", "histogram", "between tokens of one answer");
    t.histogram("inter_token_seconds", c.inter_token);
  }
  t.family("tokens_total", "counter", "tokens by kind");
  t.value("tokens_total", c.prompt_tokens.load(), "{kind=\"prompt\"}");
  t.value("tokens_total", c.cached_tokens.load(), "{kind=\"cached\"}");
  t.value("tokens_total", c.completion_tokens.load(), "{kind=\"completion\"}");
  t.family("limit_refusals_total", "counter", "how often each limit was passed: refused, cut, or held back");
  for (const Limit& limit : limit_table())
    if (limit.kind != LimitKind::paces)
      t.value("limit_refusals_total", c.limits[static_cast<size_t>(limit.id)].load(),
              fmt::format("{{limit=\"{}\"}}", limit.name));
  t.family("queue_depth", "gauge", "requests that wait");
  t.value("queue_depth", row("waiting"));
  t.family("rows", "gauge", "answers under way");
  t.value("rows", row("active"));
  t.family("pages_free", "gauge", "pages of the KV cache that nobody holds");
  t.value("pages_free", row("pages_free"));
  t.family("cache_hits_total", "counter", "requests that found a prefix in the cache");
  t.value("cache_hits_total", c.cache_hits.load());
  t.family("worker_restarts_total", "counter", "workers that ended and were started again");
  t.value("worker_restarts_total", services.models.restarts());
  t.family("last_token_age_seconds", "gauge", "since a worker with open requests was last heard of");
  t.value("last_token_age_seconds", static_cast<double>(services.models.silence_ms()) / 1000);
  t.family("bytes", "gauge", "memory by pool");
  t.value("bytes", row("kv_bytes"), "{pool=\"kv\"}");
  t.value("bytes", row("prefix_bytes"), "{pool=\"prefixes\"}");
  return t.take();
}

void metrics(Services& services, Call call) {
  look_at_default(services, [&services, call](const json::Value& rows) {
    call.answer({.status = 200,
                 .headers = {},
                 .body = render(services, rows),
                 .content_type = "text/plain; version=0.0.4; charset=utf-8"});
  });
}

}  // namespace

const Route kMetrics = {.method = "GET", .path = "/metrics", .summary = "figures for Prometheus", .handle = metrics};

}  // namespace hearth::server
