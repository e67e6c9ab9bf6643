#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "decode/generate.h"
#include "eval/data.h"

namespace hearth::eval {

double log_probability(std::span<const float> logits, int32_t target) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(double{z} - top);
  return double{logits[static_cast<size_t>(target)]} - top - std::log(sum);
}

std::vector<int32_t> perplexity_ids(const text::Tokenizer& tokenizer, const std::vector<std::string>& documents,
                                    const PerplexityOptions& options) {
  const bool llama = options.method == PerplexityMethod::llama;
  std::vector<int32_t> ids;
  const size_t wanted = static_cast<size_t>(options.row * options.rows_max);
  for (const size_t i : llama ? permutation(1, 0) : permutation(documents.size(), options.seed)) {
    // llama: one stream in file order.
    std::string joined;
    if (llama)
      for (const std::string& d : documents) joined += d;
    const std::vector<int32_t> more =
        tokenizer.encode(llama ? joined : documents[i], {.parse_special = false, .add_special = true});
    ids.insert(ids.end(), more.begin(), more.end());
    if (!llama && !tokenizer.end_ids().empty() && (more.empty() || more.back() != tokenizer.end_ids().front()))
      ids.push_back(tokenizer.end_ids().front());
    if (ids.size() >= wanted) break;
  }
  if (std::cmp_less(ids.size(), options.row))
    fail(ErrorKind::invalid_argument, "the text has {} tokens, perplexity needs at least {}", ids.size(), options.row);
  return ids;
}

Perplexity perplexity(decode::Engine& engine, const text::Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const PerplexityOptions& options, const std::function<void(int64_t, int64_t)>& progress) {
  const bool llama = options.method == PerplexityMethod::llama;
  const int64_t rows = std::min<int64_t>(static_cast<int64_t>(ids.size()) / options.row, options.rows_max);
  HEARTH_CHECK(rows > 0, "{} ids are less than a row of {}", ids.size(), options.row);
  Perplexity result;
  double sum = 0, squares = 0;
  int64_t bytes = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = ids.subspan(static_cast<size_t>(r * options.row), static_cast<size_t>(options.row));
    // llama.cpp scores what the positions from row / 2 on predict.
    const int64_t scored_from = llama ? options.row / 2 + 1 : 1;
    std::vector<int32_t> input(row.begin(), row.end());
    if (llama && tokenizer.adds_bos()) input[0] = *tokenizer.bos();
    decode::evaluate(engine, input, [&](int64_t position, std::span<const float> logits) {
      const int64_t target = position + 1;
      if (target >= options.row || target < scored_from) return;
      const int32_t id = row[static_cast<size_t>(target)];
      const double nats = -log_probability(logits, id);
      if (!std::isfinite(nats))
        throw decode::no_numbers(engine, engine.adapter_name(decode::kDefaultAdapter), "a logit is NaN or infinite");
      sum += nats;
      squares += nats * nats;
      ++result.tokens;
      if (!tokenizer.is_special(id)) bytes += static_cast<int64_t>(tokenizer.piece_bytes(id, false).size());
    });
    if (progress) progress(r + 1, rows);
  }
  const double N = static_cast<double>(result.tokens);
  result.rows = rows;
  result.mean_nats = sum / N;
  result.value = std::exp(result.mean_nats);
  if (rows > 1) {
    const double variance = std::max(0.0, squares / N - result.mean_nats * result.mean_nats) * N / (N - 1);
    result.standard_error = result.value * std::sqrt(variance / N);
  }
  result.bits_per_byte = bytes > 0 ? sum / std::log(2.0) / static_cast<double>(bytes) : 0;
  return result;
}

}  // namespace hearth::eval
