#include "server/worker/signal_json.h"

#include "decode/signal.h"
#include "server/worker/answer_text.h"

namespace hearth::server {

json::Object signal_json(std::span<const float> logits, const text::Tokenizer& tokenizer) {
  using decode::kSignalBins;
  const decode::Signal signal = decode::signal_of(logits);
  const auto edge = [](int64_t i) {
    return decode::kSignalFloor * (static_cast<double>(kSignalBins - i) / static_cast<double>(kSignalBins));
  };
  json::Array bins, top;
  for (int64_t i = 0; i < kSignalBins; ++i) {
    json::Object bin;
    bin["low"] = edge(i);
    bin["high"] = edge(i + 1);
    bin["count"] = signal.count[static_cast<size_t>(i)];
    bin["mass"] = signal.mass[static_cast<size_t>(i)];
    bins.emplace_back(std::move(bin));
  }
  for (const auto& [id, logprob] : signal.top) top.emplace_back(token_entry(tokenizer, id, logprob, Spelling::text));
  json::Object o;
  o["bins"] = std::move(bins);
  o["entropy"] = signal.entropy;
  o["top"] = std::move(top);
  return o;
}

}  // namespace hearth::server
