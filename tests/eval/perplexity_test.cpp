#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "decode/generate.h"
#include "decode/tiny_engine.h"
#include "eval/data.h"
#include "support/outcome.h"

namespace hearth::eval {
namespace {

using decode::tiny_engine;
using Ids = std::vector<int32_t>;

text::Tokenizer bytes_tokenizer() {
  text::TokenizerTables tables = text::parse_tokenizer_json(text::byte_level_json({}), "tokenizer.json");
  text::apply_config_files(
      tables, {.tokenizer_config = {{R"({"bos_token": "<s>", "eos_token": "</s>"})", "tokenizer_config.json"}}});
  return text::Tokenizer(std::move(tables));
}

TEST(LogProbability, is_the_log_softmax) {
  const std::vector<float> z = {1000, 1000 + std::log(3.0f)};
  EXPECT_NEAR(log_probability(z, 0), std::log(0.25), 1e-4);
  EXPECT_NEAR(log_probability(std::vector<float>{0, 0, 0, 0}, 2), std::log(0.25), 1e-12);
}

// Sum, sum of squares and count of -log p over targets [from, row) of rows of ids; inputs as `first` says.
struct Sums {
  double nats = 0, squares = 0;
  int64_t tokens = 0;
};
Sums direct(decode::Engine& engine, const Ids& ids, int64_t row, int64_t rows, int64_t from, bool bos_first) {
  Sums s;
  for (int64_t r = 0; r < rows; ++r) {
    const Ids targets(ids.begin() + r * row, ids.begin() + (r + 1) * row);
    Ids input = targets;
    if (bos_first) input[0] = 256;
    std::vector<std::vector<float>> logits;
    decode::evaluate(engine, input,
                     [&](int64_t, std::span<const float> z) { logits.emplace_back(z.begin(), z.end()); });
    for (int64_t t = from; t < row; ++t) {
      double sum = 0;
      for (const float z : logits[static_cast<size_t>(t - 1)]) sum += std::exp(static_cast<double>(z));
      const int32_t id = targets[static_cast<size_t>(t)];
      const double nats = std::log(sum) - logits[static_cast<size_t>(t - 1)][static_cast<size_t>(id)];
      s.nats += nats;
      s.squares += nats * nats;
      ++s.tokens;
    }
  }
  return s;
}

Perplexity perplexity_of(decode::Engine& engine, const std::vector<std::string>& documents,
                         const PerplexityOptions& options) {
  const text::Tokenizer tokenizer = bytes_tokenizer();
  return perplexity(engine, tokenizer, perplexity_ids(tokenizer, documents, options), options);
}

const std::vector<std::string> kDocuments = {"first text, of some length", "the second", "and a third one here"};

TEST(Perplexity, mlx_shuffles_documents_and_ends_each) {
  const auto engine = tiny_engine({}, {.context = 64, .gathered_max = 16});
  Ids ids;
  for (const size_t i : permutation(3, 123)) {
    ids.push_back(256);  // the tokenizer's BOS
    for (const char c : kDocuments[i]) ids.push_back(static_cast<uint8_t>(c));
    ids.push_back(257);
  }
  const int64_t rows = static_cast<int64_t>(ids.size()) / 16;
  ASSERT_GT(rows, 2);
  const Perplexity p = perplexity_of(*engine, kDocuments, {.row = 16});
  const Sums s = direct(*engine, ids, 16, rows, 1, false);
  const double N = static_cast<double>(s.tokens), mean = s.nats / N;
  EXPECT_EQ(p.rows, rows);
  EXPECT_EQ(p.tokens, rows * 15);
  EXPECT_EQ(p.tokens, s.tokens);
  EXPECT_NEAR(p.mean_nats, mean, 1e-9);
  EXPECT_NEAR(p.value, std::exp(mean), 1e-6 * p.value);
  const double deviation = std::sqrt((s.squares - N * mean * mean) / (N - 1));
  ASSERT_TRUE(p.standard_error);
  EXPECT_NEAR(*p.standard_error, p.value * deviation / std::sqrt(N), 1e-6 * p.value);
  int64_t bytes = 0;
  for (int64_t i = 0; i < rows * 16; ++i) bytes += i % 16 != 0 && ids[static_cast<size_t>(i)] < 256;
  EXPECT_NEAR(p.bits_per_byte, s.nats / std::log(2.0) / static_cast<double>(bytes), 1e-9);
}

TEST(Perplexity, llama_scores_the_second_half_of_windows_in_file_order) {
  const auto engine = tiny_engine({}, {.context = 64, .gathered_max = 16});
  Ids ids = {256};
  for (const std::string& d : kDocuments)
    for (const char c : d) ids.push_back(static_cast<uint8_t>(c));
  const int64_t rows = static_cast<int64_t>(ids.size()) / 16;
  const Perplexity p = perplexity_of(*engine, kDocuments, {.method = PerplexityMethod::llama, .row = 16});
  // As llama.cpp's tool: logits of positions 8 to 14, which predict 9 to 15.
  const Sums s = direct(*engine, ids, 16, rows, 9, true);
  EXPECT_EQ(p.tokens, rows * 7);
  EXPECT_NEAR(p.mean_nats, s.nats / static_cast<double>(s.tokens), 1e-9);
}

TEST(Perplexity, one_row_has_no_standard_error) {
  const auto engine = tiny_engine({}, {.context = 64, .gathered_max = 16});
  EXPECT_FALSE(perplexity_of(*engine, kDocuments, {.row = 16, .rows_max = 1}).standard_error);
}

TEST(Perplexity, refuses_less_than_a_row) {
  EXPECT_EQ(test::outcome([&] { perplexity_ids(bytes_tokenizer(), {"abc"}, {.row = 16}); }),
            "invalid_argument: the text has 5 tokens, perplexity needs at least 16");
}

}  // namespace
}  // namespace hearth::eval
