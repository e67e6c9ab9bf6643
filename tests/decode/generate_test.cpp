// One answer: prefix reuse, chunks, limits, end ids, cancellation; and text: stop strings, UTF-8.
#include "decode/generate.h"

#include <gtest/gtest.h>

#include "decode/complete.h"
#include "decode/tiny_engine.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using test::TinyModel;
using Ids = std::vector<int32_t>;

const auto kGoOn = [](int32_t) { return true; };

Ids answer(Engine& engine, const Ids& prompt, GenerateOptions options = {.max_tokens = 12}) {
  Sequence s = engine.cache().make();
  const Generated g = generate(engine, s, prompt, options, kGoOn);
  engine.cache().free(s);
  return g.ids;
}

TEST(Generate, chunks_of_any_size_give_the_same_ids_and_logprobs) {
  const Ids prompt = prompt_ids(150);
  for (const int64_t window : {0, 48}) {
    std::optional<Generated> want;
    for (const int64_t chunk : {150, 1, 7, 64}) {
      const auto engine = tiny_engine({.window = window}, {.context = 200, .prefill_chunk = chunk});
      Sequence s = engine->cache().make();
      GenerateOptions options{.max_tokens = 10};
      options.sampler.temperature = 1;
      options.sampler.seed = 3;
      Generated g = generate(*engine, s, prompt, options, kGoOn);
      EXPECT_EQ(g.ids.size(), 10u);
      if (want) {
        EXPECT_EQ(g.ids, want->ids) << "chunk " << chunk << " window " << window;
        EXPECT_EQ(g.logprobs, want->logprobs) << "chunk " << chunk << " window " << window;
      } else {
        want = std::move(g);
      }
    }
  }
}

TEST(Generate, a_reused_prefix_gives_the_answer_of_a_cold_run) {
  for (const int64_t window : {0, 48}) {
    const auto engine = tiny_engine({.window = window}, {.context = 400, .sequences_max = 2, .prefill_chunk = 64});
    const Ids first = prompt_ids(100);
    Sequence s = engine->cache().make();
    const Generated one = generate(*engine, s, first, {.max_tokens = 8}, kGoOn);
    EXPECT_EQ(one.stats.cached_tokens, 0);
    Ids second = first;  // the chat goes on
    second.insert(second.end(), one.ids.begin(), one.ids.end());
    const Ids more = prompt_ids(20, 9);
    second.insert(second.end(), more.begin(), more.end());
    const Generated two = generate(*engine, s, second, {.max_tokens = 8}, kGoOn);
    EXPECT_EQ(two.stats.cached_tokens, 107);  // all but the last token drawn, which was never evaluated
    EXPECT_EQ(two.stats.prompt_tokens, 128);
    EXPECT_EQ(two.ids, answer(*engine, second, {.max_tokens = 8}));
    // The same prompt again: the last token is evaluated anew.
    const Generated again = generate(*engine, s, second, {.max_tokens = 8}, kGoOn);
    EXPECT_EQ(again.stats.cached_tokens, 127);
    EXPECT_EQ(again.ids, two.ids);
    // Another chat that shares a beginning: with a window as well, while the pages behind it are kept.
    Ids other(second.begin(), second.begin() + 90);
    other.push_back(7);
    const Generated edited = generate(*engine, s, other, {.max_tokens = 8}, kGoOn);
    EXPECT_EQ(edited.stats.cached_tokens, 90);
    EXPECT_EQ(edited.ids, answer(*engine, other, {.max_tokens = 8}));
    EXPECT_EQ(edited.logprobs.size(), 8u);
  }
}

TEST(Generate, refuses_prompts_that_are_empty_or_too_long_before_any_work) {
  const auto engine = tiny_engine({}, {.context = 64});
  Sequence s = engine->cache().make();
  EXPECT_EQ(test::outcome([&] { generate(*engine, s, {}, {}, kGoOn); }), "invalid_argument: the prompt is empty");
  EXPECT_EQ(test::outcome([&] { generate(*engine, s, prompt_ids(65), {}, kGoOn); }),
            "out_of_memory: the prompt has 65 tokens, the context holds 64");
  EXPECT_EQ(test::outcome([&] { generate(*engine, s, prompt_ids(3), {.max_tokens = -1}, kGoOn); }),
            "invalid_argument: max-tokens is -1, expected 0 or more");
  GenerateOptions hot;
  hot.sampler.top_p = 2;
  EXPECT_EQ(test::outcome([&] { generate(*engine, s, prompt_ids(3), hot, kGoOn); }),
            "invalid_argument: top-p is 2, expected more than 0, up to 1");
  EXPECT_EQ(s.length(), 0);
}

TEST(Generate, max_tokens_is_lowered_to_the_room_left) {
  const auto engine = tiny_engine({}, {.context = 64});
  Sequence s = engine->cache().make();
  const Generated g = generate(*engine, s, prompt_ids(60), {.max_tokens = 100}, kGoOn);
  EXPECT_EQ(g.max_tokens, 5);  // the last token drawn is never evaluated
  EXPECT_EQ(g.ids.size(), 5u);
  EXPECT_EQ(g.finish, FinishReason::length);
  EXPECT_EQ(s.length(), 64);
  const Generated full = generate(*engine, s, prompt_ids(64, 8), {.max_tokens = 3}, kGoOn);
  EXPECT_EQ(full.ids.size(), 1u);
  const Generated none = generate(*engine, s, prompt_ids(5), {.max_tokens = 0}, kGoOn);
  EXPECT_TRUE(none.ids.empty());
  EXPECT_EQ(none.finish, FinishReason::length);
}

// A long answer is drawn anew, or the question before it is edited: what the window keeps behind it is reused, and the
// answer is the cold one, bit for bit. Beyond that the whole prompt is evaluated.
TEST(Generate, an_edit_behind_the_window_reuses_what_is_kept_and_changes_no_bit) {
  const auto engine = tiny_engine({.window = 48}, {.context = 512, .sequences_max = 2, .prefill_chunk = 128});
  const Ids prompt = prompt_ids(200);
  const GenerateOptions options{.max_tokens = 150};
  Sequence s = engine->cache().make();
  const Generated first = generate(*engine, s, prompt, options, kGoOn);
  const Generated redrawn = generate(*engine, s, prompt, options, kGoOn);
  EXPECT_EQ(redrawn.stats.cached_tokens, 199);
  EXPECT_EQ(redrawn.ids, first.ids);
  EXPECT_EQ(redrawn.logprobs, first.logprobs);
  Ids edited(prompt.begin(), prompt.begin() + 20);
  edited.push_back(3);
  const Generated early = generate(*engine, s, edited, {.max_tokens = 8}, kGoOn);
  EXPECT_EQ(early.stats.cached_tokens, 0);  // position 20 sees page 0, which has been given back
  EXPECT_EQ(early.ids, answer(*engine, edited, {.max_tokens = 8}));
}

// a -> b -> c -> </s>
TinyModel abc() { return {.L = 1, .chain = {{'a', 'b'}, {'b', 'c'}, {'c', 257}, {257, 'a'}}}; }

TEST(Generate, end_ids_stop_it_and_are_never_reported) {
  const auto engine = tiny_engine(abc());
  Sequence s = engine->cache().make();
  Ids told;
  const auto tell = [&](int32_t id) {
    told.push_back(id);
    return true;
  };
  const Generated g = generate(*engine, s, Ids{'a'}, {.end_ids = {5, 257}}, tell);
  EXPECT_EQ(g.ids, (Ids{'b', 'c'}));
  EXPECT_EQ(told, g.ids);
  EXPECT_EQ(g.finish, FinishReason::stop);
  EXPECT_EQ(g.stats.generated_tokens, 2);
  EXPECT_EQ(g.logprobs.size(), 2u);
  EXPECT_EQ(s.ids, (Ids{'a', 'b', 'c'}));
  const Generated on = generate(*engine, s, Ids{'a'}, {.max_tokens = 6}, kGoOn);  // without end ids it goes round
  EXPECT_EQ(on.ids, (Ids{'b', 'c', 257, 'a', 'b', 'c'}));
  EXPECT_EQ(on.finish, FinishReason::length);
}

TEST(Generate, the_caller_may_stop_it) {
  const auto engine = tiny_engine(abc());
  Sequence s = engine->cache().make();
  const Generated g = generate(*engine, s, Ids{'a'}, {}, [](int32_t id) { return id != 'c'; });
  EXPECT_EQ(g.ids, (Ids{'b', 'c'}));
  EXPECT_EQ(g.finish, FinishReason::stop);
}

TEST(Generate, is_cancelled_between_steps) {
  const auto engine = tiny_engine({}, {.context = 300, .prefill_chunk = 16});
  std::atomic<bool> cancel = true;
  Sequence s = engine->cache().make();
  GenerateOptions options{.max_tokens = 50, .cancel = &cancel};
  const Generated before = generate(*engine, s, prompt_ids(100), options, kGoOn);
  EXPECT_EQ(before.finish, FinishReason::cancelled);
  EXPECT_TRUE(before.ids.empty());
  EXPECT_EQ(s.length(), 0);
  cancel = false;
  int count = 0;
  const Generated during = generate(*engine, s, prompt_ids(100), options, [&](int32_t) {
    if (++count == 3) cancel = true;
    return true;
  });
  EXPECT_EQ(during.finish, FinishReason::cancelled);
  EXPECT_EQ(during.ids.size(), 3u);
  // The sequence is as good as new: the answer from it is the cold one.
  cancel = false;
  options.max_tokens = 6;
  EXPECT_EQ(generate(*engine, s, prompt_ids(100), options, kGoOn).ids, answer(*engine, prompt_ids(100), options));
}

TEST(Generate, two_sequences_do_not_disturb_each_other) {
  const auto engine = tiny_engine({}, {.context = 128, .sequences_max = 2, .prefill_chunk = 64});
  const Ids a = prompt_ids(40, 1), b = prompt_ids(30, 2);
  const Ids want_a = answer(*engine, a), want_b = answer(*engine, b);
  Sequence sa = engine->cache().make(), sb = engine->cache().make();
  EXPECT_EQ(generate(*engine, sa, a, {.max_tokens = 12}, kGoOn).ids, want_a);
  EXPECT_EQ(generate(*engine, sb, b, {.max_tokens = 12}, kGoOn).ids, want_b);
  Ids on = a;
  on.insert(on.end(), want_a.begin(), want_a.end());
  const Generated g = generate(*engine, sa, on, {.max_tokens = 4}, kGoOn);
  EXPECT_EQ(g.stats.cached_tokens, 51);
  engine->cache().free(sa);
  engine->cache().free(sb);
  EXPECT_EQ(g.ids, answer(*engine, on, {.max_tokens = 4}));
}

TEST(Evaluate, gives_every_row_once_in_order) {
  const auto engine = tiny_engine({}, {.context = 128, .prefill_chunk = 50, .gathered_max = 7});
  const Ids ids = prompt_ids(40);
  std::vector<std::vector<float>> rows;
  evaluate(*engine, ids, [&](int64_t row, std::span<const float> logits) {
    EXPECT_EQ(row, static_cast<int64_t>(rows.size()));
    rows.emplace_back(logits.begin(), logits.end());
  });
  ASSERT_EQ(rows.size(), 40u);
  Sequence s = engine->cache().make();
  for (size_t i = 0; i < ids.size(); ++i) {
    const StepInput input{&s, std::span(ids).subspan(i, 1), 1};
    const std::span<float> logits = engine->step({&input, 1});
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), rows[i].begin(), rows[i].end())) << i;
  }
  EXPECT_EQ(test::outcome([&] { evaluate(*engine, {}, [](int64_t, std::span<const float>) {}); }),
            "invalid_argument: there are no ids to evaluate");
  EXPECT_EQ(test::outcome([&] { evaluate(*engine, prompt_ids(129), [](int64_t, std::span<const float>) {}); }),
            "out_of_memory: 129 ids do not fit the context of 128");
}

TEST(Evaluate, gives_its_pages_back_when_it_fails) {
  const auto engine = tiny_engine({}, {.context = 128, .prefill_chunk = 16, .gathered_max = 16});
  const int64_t pages = engine->cache().pages_free(0);
  Ids ids = prompt_ids(40);
  ids[30] = 1000;  // the second chunk
  EXPECT_EQ(test::outcome([&] { evaluate(*engine, ids, [](int64_t, std::span<const float>) {}); }),
            "invalid_argument: token id 1000 is outside the vocabulary of 258");
  EXPECT_EQ(engine->cache().pages_free(0), pages);
}

// The text of a chain of bytes behind "<", and the pieces it came in.
struct Told {
  Completion completion;
  std::vector<std::string> pieces;
};
Told tell(const std::string& bytes, const std::vector<std::string>& stops, int64_t max_tokens = 100) {
  TinyModel m{.L = 1};
  Ids chain = {'<'};
  for (const char c : bytes) chain.push_back(static_cast<uint8_t>(c));
  chain.push_back(257);
  for (size_t i = 0; i + 1 < chain.size(); ++i) m.chain.push_back({chain[i], chain[i + 1]});
  const auto engine = tiny_engine(m);
  const text::Tokenizer tokenizer(text::parse_tokenizer_json(text::byte_level_json({}), "tokenizer.json"));
  Sequence s = engine->cache().make();
  Told told;
  told.completion = complete(*engine, tokenizer, s, Ids{'<'}, {.max_tokens = max_tokens, .end_ids = {257}}, stops,
                             [&](std::string_view piece) { told.pieces.emplace_back(piece); });
  return told;
}

TEST(Complete, streams_text_that_joins_to_the_whole) {
  const Told t = tell("abcde", {});
  EXPECT_EQ(t.completion.text, "abcde");
  EXPECT_EQ(t.pieces.size(), 5u);
  EXPECT_EQ(t.completion.generated.finish, FinishReason::stop);
}

TEST(Complete, withholds_a_stop_string_and_all_behind_it) {
  const Told t = tell("abcdefgh", {"de"});
  EXPECT_EQ(t.completion.text, "abc");
  EXPECT_EQ(t.completion.generated.finish, FinishReason::stop);
  EXPECT_EQ(t.completion.generated.ids.size(), 5u);  // it stops where the match ends
  std::string joined;
  for (const std::string& piece : t.pieces) joined += piece;
  EXPECT_EQ(joined, "abc");
  // A prefix of a stop string that comes to nothing is told in the end.
  EXPECT_EQ(tell("abcd", {"dX"}).completion.text, "abcd");
  EXPECT_EQ(tell("abcdefgh", {"dX", "gh"}, 4).completion.text, "abcd");
  EXPECT_EQ(tell("abcdefgh", {}, 4).completion.generated.finish, FinishReason::length);
}

TEST(Complete, never_tells_a_broken_character) {
  const Told t = tell("a\xe2\x82\xac!", {});  // the euro sign, byte by byte
  EXPECT_EQ(t.pieces, (std::vector<std::string>{"a", "\xe2\x82\xac", "!"}));
  EXPECT_EQ(tell("a\xe2\x82!", {}).completion.text, "a\xef\xbf\xbd!");       // broken: U+FFFD
  EXPECT_EQ(tell("a\xe2\x82\xac", {}, 3).completion.text, "a\xef\xbf\xbd");  // cut short by max_tokens
}

// A SentencePiece vocabulary: <s> is 1, the pieces are "\u2581", "a" and "\u2581a".
std::string continued(const Ids& prompt, std::vector<std::pair<int32_t, int32_t>> chain) {
  const auto engine = tiny_engine({.L = 1, .V = 320, .chain = std::move(chain)});
  const text::Tokenizer tokenizer(
      tables_from_gguf(text::sentencepiece_gguf({{"\u2581", -1}, {"a", -2}, {"\u2581a", -1}}), "test.gguf"));
  Sequence s = engine->cache().make();
  return complete(*engine, tokenizer, s, prompt, {.max_tokens = 2}, {}, [](std::string_view) {}).text;
}

TEST(Complete, is_the_exact_continuation_of_the_prompts_text) {
  const int32_t mark = text::kFirstPiece, a = mark + 1, word = mark + 2;
  EXPECT_EQ(continued({1, word}, {{word, word}}), " a a");  // of "a": the text is "a a a"
  EXPECT_EQ(continued({1, mark, a}, {{a, a}}), "aa");
  EXPECT_EQ(continued({1, a}, {{a, word}, {word, a}}), " aa");
  EXPECT_EQ(continued({1}, {{1, word}, {word, word}}), "a a");      // nothing before: the dummy space is no text
  EXPECT_EQ(continued({310}, {{310, word}, {word, word}}), "a a");  // a padding id has no text either
}

TEST(EndIds, are_the_union_of_config_and_tokenizer) {
  const test::TempDir dir;
  dir.write("generation_config.json", R"({"eos_token_id": [5, 1000, -1]})");
  const auto model = test::open_tiny_model({}, dir);
  const text::Tokenizer tokenizer(model->tokenizer());
  EXPECT_EQ(end_ids(model->spec(), tokenizer), (Ids{5, 257}));  // ids outside the vocabulary never come
}

}  // namespace
}  // namespace hearth::decode
