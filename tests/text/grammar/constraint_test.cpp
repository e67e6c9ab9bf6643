#include "text/grammar/constraint.h"

#include <cmath>
#include <string>
#include <vector>

#include "grammar_cases.h"

namespace hearth::text {
namespace {

using Begin = ConstraintOptions::Begin;
using Then = ConstraintOptions::Then;

std::shared_ptr<const VocabularyIndex> words() {
  static const auto vocabulary = vocabulary_of({"</think>", "think>", "</", "<call>", "<ca", "ll>x", "ll>", "</think>a",
                                                "</think>ab", "ab", "hello", "\n", "b", "a", "bab", "ll>ab"});
  return vocabulary;
}
int32_t id_of(std::string_view piece) {
  for (int32_t id = words()->vocab_size() - 1; id >= 0; --id)
    if (words()->bytes(id) == piece) return id;
  ADD_FAILURE() << piece;
  return -1;
}
int32_t end_id() { return words()->end_ids()[0]; }

bool allowed(Constraint& c, int32_t id) {
  std::vector<float> logits(static_cast<size_t>(words()->vocab_size()) + 10, 1.0f);
  c.apply(logits);
  return logits[static_cast<size_t>(id)] == 1.0f;
}
bool allowed(Constraint& c, std::string_view piece) { return allowed(c, id_of(piece)); }
void write(Constraint& c, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) c.accept(id_of(piece));
}

TEST(Constraint, from_the_first_token) {
  Constraint c(compile_regex("(ab)+"), words(), {});
  EXPECT_FALSE(c.free());
  EXPECT_TRUE(allowed(c, "ab"));
  EXPECT_FALSE(allowed(c, "hello"));
  EXPECT_FALSE(allowed(c, end_id()));
  std::vector<float> logits(static_cast<size_t>(words()->vocab_size()) + 3, 1.0f);
  c.apply(logits);
  EXPECT_TRUE(std::isinf(logits.back()));  // rows that pad the vocabulary
  c.accept(id_of("ab"));
  EXPECT_TRUE(allowed(c, end_id()));
  EXPECT_FALSE(c.done());
  expect_error(ErrorKind::invalid_argument, "\"hello\" cannot follow \"ab\"", [&] { c.accept(id_of("hello")); });
  c.accept(end_id());
  EXPECT_TRUE(c.done());
  expect_error(ErrorKind::invalid_argument, "has ended", [&] { c.apply(logits); });
}

TEST(Constraint, an_answer_that_must_end_allows_end_ids_alone) {
  Constraint c(compile_regex("ab"), words(), {});
  c.accept(id_of("ab"));
  EXPECT_TRUE(c.done());
  for (int32_t id = 0; id < words()->vocab_size(); ++id) EXPECT_EQ(allowed(c, id), id == end_id()) << id;
}

TEST(Constraint, behind_a_marker) {
  const ConstraintOptions options{.begin = Begin::behind, .marker = "</think>"};
  Constraint c(compile_regex("(ab)+"), words(), options);
  EXPECT_TRUE(c.free());
  EXPECT_TRUE(allowed(c, "hello"));
  EXPECT_FALSE(allowed(c, end_id()));  // the answer is still to come
  EXPECT_TRUE(allowed(c, "</think>"));
  EXPECT_TRUE(allowed(c, "</think>a"));  // a, then b
  EXPECT_TRUE(allowed(c, "</think>ab"));
  write(c, {"hello", "ab", "</"});
  EXPECT_TRUE(allowed(c, "think>"));
  write(c, {"</"});  // not the marker
  EXPECT_TRUE(c.free());
  write(c, {"think>"});
  EXPECT_FALSE(c.free());
  EXPECT_FALSE(allowed(c, "hello"));
  EXPECT_FALSE(allowed(c, "\n"));
  write(c, {"ab", "ab"});
  EXPECT_TRUE(allowed(c, end_id()));

  Constraint split(compile_regex("b(ab)*"), words(), options);
  EXPECT_FALSE(allowed(split, "</think>a"));  // what stands behind the marker must begin the answer
  EXPECT_TRUE(allowed(split, "</think>"));
  Constraint spaced(with_leading_space(compile_regex("ab")), words(), options);
  write(spaced, {"</think>", "\n", "\n", "ab"});
  EXPECT_TRUE(spaced.done());
}

TEST(Constraint, at_a_marker_again_and_again) {
  Constraint c(compile_regex("ab;"), words(),
               {.begin = Begin::at_marker, .marker = "<call>", .then = Then::free, .matches_max = 2});
  EXPECT_TRUE(allowed(c, end_id()));
  EXPECT_TRUE(allowed(c, "hello"));
  write(c, {"hello", "<ca"});
  EXPECT_TRUE(allowed(c, "ll>"));
  EXPECT_FALSE(allowed(c, "ll>x"));
  EXPECT_TRUE(allowed(c, "ll>ab"));
  Constraint draft = c;
  draft.accept(id_of("ll>ab"));
  EXPECT_FALSE(draft.free());
  EXPECT_TRUE(c.free());
  write(c, {"ll>"});
  EXPECT_FALSE(allowed(c, end_id()));
  write(c, {"a", "b", ";"});
  EXPECT_EQ(c.matches(), 1);
  EXPECT_TRUE(c.free());
  write(c, {"hello", "<call>", "ab", ";"});
  EXPECT_EQ(c.matches(), 2);
  EXPECT_TRUE(c.done());
  EXPECT_FALSE(allowed(c, "hello"));
  EXPECT_TRUE(allowed(c, end_id()));
}

TEST(Constraint, every_cut_of_a_text_gives_the_same_phases) {
  const std::string text = "so <<call>ab;";
  for (size_t i = 1; i < text.size(); ++i)
    for (size_t k = i; k < text.size(); ++k) {
      const auto vocabulary = vocabulary_of({text.substr(0, i), text.substr(i, k - i) + "", text.substr(k)});
      Constraint c(compile_regex("ab;"), vocabulary, {.begin = Begin::at_marker, .marker = "<call>"});
      std::vector<uint64_t> bits(vocabulary->words());
      for (const std::string& part : {text.substr(0, i), text.substr(i, k - i), text.substr(k)}) {
        if (part.empty()) continue;
        int32_t id = vocabulary->vocab_size() > 0 ? static_cast<int32_t>(vocabulary->vocab_size()) - 1 : 0;
        while (vocabulary->bytes(id) != part) --id;
        c.mask(bits);
        EXPECT_TRUE(bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1) << part;
        c.accept(id);
      }
      EXPECT_EQ(c.matches(), 1) << i << ' ' << k;
      EXPECT_TRUE(c.done());
    }
}

TEST(Constraint, an_empty_mask_is_an_error_with_its_place) {
  // A vocabulary without single bytes cannot finish "abc".
  GgufTokenizer g;
  g.model = "llama";
  g.tokens = {"<unk>", "<s>", "</s>", "ab"};
  g.scores = {0, 0, 0, 0};
  g.types = {2, 3, 3, 1};
  g.unk = 0;
  g.bos = 1;
  g.eos = 2;
  const Tokenizer tokenizer(tables_from_gguf(g, "test"));
  const auto vocabulary = std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());
  Constraint c(compile_regex("abc"), vocabulary, {});
  c.accept(3);
  std::vector<float> logits(4, 0.0f);
  expect_error(ErrorKind::invalid_argument, "can follow \"ab\": the grammar wants one of \"c\"",
               [&] { c.apply(logits); });
}

TEST(Constraint, bad_options_are_refused) {
  const GrammarPtr g = compile_regex("a");
  expect_refused("marker", [&] { Constraint(g, words(), {.begin = Begin::behind}); });
  expect_refused("marker", [&] { Constraint(g, words(), {.marker = "x"}); });
  expect_refused("marker",
                 [&] { Constraint(g, words(), {.begin = Begin::at_marker, .marker = std::string(257, 'x')}); });
}

}  // namespace
}  // namespace hearth::text
