// Vectors of texts: what a vector may depend on, how it is cut, and what is refused with which words.
#include "decode/embed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/outcome.h"
#include "support/tiny_encoder.h"
#include "support/tiny_model.h"

namespace hearth::decode {
namespace {

using test::outcome;
using test::TempDir;
using test::TinyEncoder;
using test::TinyModel;

Embedder encoder(EmbedderOptions options = {}, const TinyEncoder& m = {}, int threads = 1) {
  const TempDir dir;  // mapped files outlive their names; pooling is read by now
  return {test::open_tiny_encoder(m, dir), graph::make_reference_executor(threads), options};
}
Embedder decoder(EmbedderOptions options = {}, const TinyModel& m = {}, int threads = 1) {
  const TempDir dir;
  return {test::open_tiny_model(m, dir), graph::make_reference_executor(threads), options};
}

TextIds random_texts(std::initializer_list<int64_t> lengths, uint64_t below, uint64_t seed = 3) {
  Random random(seed);
  TextIds texts;
  for (const int64_t n : lengths) {
    std::vector<int32_t>& text = texts.emplace_back();
    for (int64_t i = 0; i < n; ++i) text.push_back(static_cast<int32_t>(random.below(below)));
  }
  return texts;
}

double norm(std::span<const float> v) {
  double squares = 0;
  for (const float x : v) squares += double{x} * x;
  return std::sqrt(squares);
}

void expect_same(const Vectors& a, int64_t i, const Vectors& b, int64_t j, const std::string& what) {
  EXPECT_TRUE(std::ranges::equal(a[i], b[j])) << what;
}

// Alone, together, in another order, in steps cut elsewhere, on several threads: the same bits.
void check_invariance(Embedder& one, Embedder& small_steps, Embedder& threads, const TextIds& texts) {
  const Vectors together = one.embed(texts);
  ASSERT_EQ(together.count, static_cast<int64_t>(texts.size()));
  for (int64_t i = 0; i < together.count; ++i) {
    EXPECT_NEAR(norm(together[i]), 1, 1e-6);
    expect_same(one.embed({texts[static_cast<size_t>(i)]}), 0, together, i, "alone");
  }
  const Vectors cut = small_steps.embed(texts), parallel = threads.embed(texts);
  EXPECT_EQ(cut.values, together.values);
  EXPECT_EQ(parallel.values, together.values);
  TextIds reversed(texts.rbegin(), texts.rend());
  const Vectors back = one.embed(reversed);
  for (int64_t i = 0; i < back.count; ++i) expect_same(back, i, together, back.count - 1 - i, "reversed");
  EXPECT_EQ(together.tokens, back.tokens);
}

TEST(Embed, neighbours_order_steps_and_threads_change_no_bit_of_an_encoder) {
  Embedder one = encoder(), small_steps = encoder({.rows_max = 20}), threads = encoder({}, {}, 3);
  check_invariance(one, small_steps, threads, random_texts({5, 32, 1, 17, 2, 32, 9}, 56));
}

TEST(Embed, neighbours_order_steps_and_threads_change_no_bit_of_a_decoder) {
  const TinyModel windowed{.window = 12};
  for (const graph::Pooling pooling : {graph::Pooling::last, graph::Pooling::mean}) {
    Embedder one = decoder({.pooling = pooling}, windowed);
    Embedder small_steps = decoder({.pooling = pooling, .rows_max = 8}, windowed);
    Embedder threads = decoder({.pooling = pooling}, windowed, 2);
    check_invariance(one, small_steps, threads, random_texts({40, 3, 1, 70, 300}, 256));
  }
}

TEST(Embed, a_text_longer_than_a_step_gets_one_of_its_own) {
  Embedder embedder = decoder({.pooling = graph::Pooling::last, .rows_max = 4});
  Embedder whole = decoder({.pooling = graph::Pooling::last});
  const TextIds texts = random_texts({2, 501, 3, 2}, 256);
  EXPECT_EQ(embedder.embed(texts).values, whole.embed(texts).values);
}

// Against the definition: the engine's own hidden state is not at hand, but pooling over one row is that row.
TEST(Embed, one_token_pools_to_itself_and_poolings_differ_otherwise) {
  Embedder mean = encoder({.pooling = graph::Pooling::mean}), cls = encoder({.pooling = graph::Pooling::cls}),
           last = encoder({.pooling = graph::Pooling::last});
  const TextIds single = {{7}}, longer = {{7, 8, 9}};
  EXPECT_EQ(mean.embed(single).values, cls.embed(single).values);
  EXPECT_EQ(last.embed(single).values, cls.embed(single).values);
  EXPECT_NE(last.embed(longer).values, cls.embed(longer).values);
  EXPECT_NE(mean.embed(longer).values, cls.embed(longer).values);
}

TEST(Embed, dimensions_are_the_first_ones_at_length_one_again) {
  Embedder embedder = encoder();
  const TextIds texts = random_texts({5, 9}, 56);
  const Vectors whole = embedder.embed(texts), few = embedder.embed(texts, {.dimensions = 10});
  EXPECT_EQ(few.dimensions, 10);
  EXPECT_EQ(few.values.size(), 20u);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(norm(few[i]), 1, 1e-6);
    const double size = norm(whole[i].first(10));
    for (size_t d = 0; d < 10; ++d) EXPECT_NEAR(few[i][d], whole[i][d] / size, 1e-6);
  }
  EXPECT_EQ(embedder.embed(texts, {.dimensions = 48}).values, whole.values);
}

TEST(Embed, a_model_without_normalize_keeps_its_lengths) {
  const TinyEncoder m{.modules = R"([{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "1_Pooling"}])"};
  Embedder embedder = encoder({}, m);
  const TextIds texts = random_texts({5}, 56);
  const Vectors whole = embedder.embed(texts), few = embedder.embed(texts, {.dimensions = 10});
  EXPECT_GT(std::abs(norm(whole[0]) - 1), 0.01);
  EXPECT_TRUE(std::ranges::equal(few[0], whole[0].first(10)));
}

TEST(Embed, texts_become_ids_with_what_the_tokenizer_puts_around_them) {
  const TempDir dir;
  const auto model = test::open_tiny_encoder({}, dir);
  const text::Tokenizer tokenizer(model->tokenizer());
  const model::EmbeddingSpec embedding = embedding_of(*model);
  const std::vector<std::string> texts = {"ab c", "[SEP]"};
  const TextIds ids = embedding_ids(tokenizer, texts, {}, model->spec(), embedding);
  EXPECT_EQ(ids[0], (std::vector<int32_t>{2, 4, 31, 6, 3}));
  EXPECT_EQ(ids[1].back(), 3);
  EXPECT_EQ(std::ranges::count(ids[1], 3), 1);  // a text names no special token
  EXPECT_EQ(instructed("a", "find b"), "Instruct: find b\nQuery:a");
  const TextIds queries = embedding_ids(tokenizer, texts, "q", model->spec(), embedding);
  EXPECT_EQ(queries[0], tokenizer.encode("Instruct: q\nQuery:ab c", {.add_special = true}));
}

TEST(Embed, refusals) {
  Embedder embedder = encoder();
  EXPECT_EQ(outcome([&] { embedder.embed({{1}, {}}); }), "invalid_argument: text 2 has no tokens");
  EXPECT_EQ(outcome([&] { embedder.embed({{1, 56}}); }),
            "invalid_argument: text 1: token id 56 is outside the vocabulary of 56");
  EXPECT_EQ(outcome([&] { embedder.embed({{1, -1}}); }),
            "invalid_argument: text 1: token id -1 is outside the vocabulary of 56");
  const auto within = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  const std::string longer = outcome([&] { embedder.embed({{1}, std::vector<int32_t>(33, 1)}); });
  within(longer, "invalid_argument: text 2 has 33 tokens, ");
  within(longer, "config.json takes 32 at most");
  for (const int64_t wrong : {-1, 49}) {
    const std::string text = outcome([&] { embedder.embed({{1}}, {.dimensions = wrong}); });
    within(text, fmt::format("invalid_argument: {} dimensions were asked for, vectors of ", wrong));
    within(text, "config.json have 48");
  }
  EXPECT_TRUE(embedder.embed({}).values.empty());

  within(outcome([] { decoder(); }), "is no embedding model: neither its architecture nor a file");
  within(outcome([] { encoder({.memory_budget = 1'000'000}); }), "out_of_memory: ");
  within(outcome([] { encoder({.numerics = graph::Numerics::fast}); }),
         "invalid_argument: numerics fast is not offered by the executor reference");

  const TempDir dir;
  const auto model =
      test::open_tiny_encoder({.pooling = R"({"pooling_mode_mean_tokens": true, "include_prompt": false})"}, dir);
  const text::Tokenizer tokenizer(model->tokenizer());
  const std::vector<std::string> texts = {"a", ""};
  EXPECT_EQ(outcome([&] { embedding_ids(tokenizer, texts, {}, model->spec(), embedding_of(*model)); }),
            "invalid_argument: text 2 is empty");
  EXPECT_EQ(outcome([&] { embedding_ids(tokenizer, texts, "find", model->spec(), embedding_of(*model)); }),
            "invalid_argument: this model pools a text without its instruction, which is not supported");
}

TEST(Embed, memory_is_known_before_a_longer_text_is_begun) {
  Embedder probe = decoder({.pooling = graph::Pooling::last, .rows_max = 4});
  Embedder embedder = decoder({.pooling = graph::Pooling::last, .rows_max = 4, .memory_budget = probe.need().total()});
  EXPECT_EQ(embedder.embed({{1, 2, 3}}).count, 1);
  const std::string text = outcome([&] { embedder.embed({std::vector<int32_t>(500, 1)}); });
  EXPECT_NE(text.find("out_of_memory: "), text.npos) << text;
  EXPECT_NE(text.find("a text of 500 tokens needs "), text.npos) << text;
  EXPECT_EQ(embedder.embed({{1, 2, 3}}).count, 1);
}

TEST(Embed, a_stop_is_seen_between_steps) {
  Embedder embedder = encoder({.rows_max = 8});
  std::atomic<bool> cancel = false;
  int64_t seen = 0;
  EXPECT_EQ(outcome([&] {
              embedder.embed(random_texts({8, 8, 8}, 56), {.cancel = &cancel, .progress = [&](int64_t done, int64_t) {
                                                             seen = done;
                                                             cancel = done == 2;
                                                           }});
            }),
            "cancelled: interrupted after 2 of 3 texts");
  EXPECT_EQ(seen, 2);
}

TEST(Embed, which_models_are_embedding_models) {
  const TempDir a, b;
  EXPECT_TRUE(is_embedding_model(*test::open_tiny_encoder({}, a)));
  EXPECT_FALSE(is_embedding_model(*test::open_tiny_model({}, b)));
}

TEST(Embed, an_encoder_is_no_engine) {
  const TempDir dir;
  const std::shared_ptr<model::Model> model = test::open_tiny_encoder({}, dir);
  const std::string text = outcome([&] { Engine(model, graph::make_reference_executor(1), {}); });
  EXPECT_NE(text.find("invalid_argument: "), text.npos) << text;
  EXPECT_NE(text.find("a model of type bert makes vectors of texts and writes none"), text.npos) << text;
  // Its memory can be told all the same.
  const auto reference = graph::make_reference_executor(1);
  EXPECT_GT(memory_need(*model, *reference, {}, 64).arena, 0);
  EXPECT_EQ(memory_need(*model, *reference, {}, 64).kv, 0);
}

}  // namespace
}  // namespace hearth::decode
