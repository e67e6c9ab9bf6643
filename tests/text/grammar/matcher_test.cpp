#include "text/grammar/matcher.h"

#include <random>
#include <string>
#include <vector>

#include "support/scale.h"
#include "grammar_cases.h"

namespace hearth::text {
namespace {

std::vector<uint64_t> mask_of(GrammarMatcher& m) {
  std::vector<uint64_t> bits(m.vocabulary().words());
  m.mask(bits);
  return bits;
}
bool has(const std::vector<uint64_t>& bits, int32_t id) { return bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1; }

// A random text through the masks, tokens that end the text soon preferred once it is long; at every step the mask must
// say what reading each token's bytes one by one says.
std::string checked_walk(const GrammarPtr& grammar, const std::shared_ptr<const VocabularyIndex>& vocabulary,
                         uint64_t seed, int steps) {
  std::mt19937_64 rng(seed);
  GrammarMatcher m(grammar, vocabulary);
  std::string text;
  for (int step = 0; step < steps; ++step) {
    const std::vector<uint64_t> bits = mask_of(m);
    std::vector<int32_t> ids, closing;
    for (int32_t id = 0; id < vocabulary->vocab_size(); ++id) {
      bool want = vocabulary->is_end(id) && m.accepting();
      if (vocabulary->usable(id)) {
        GrammarMatcher trial = m;
        want = true;
        for (const char c : vocabulary->bytes(id)) want = want && trial.accept_bytes(std::string_view(&c, 1));
      }
      if (want != has(bits, id)) {
        ADD_FAILURE() << "seed " << seed << ", after " << text << ": token \"" << vocabulary->bytes(id) << "\" " << id
                      << " is in the mask: " << has(bits, id);
        return text;
      }
      if (!want || vocabulary->is_end(id)) continue;
      ids.push_back(id);
      if (std::string_view("\"}])").find(vocabulary->bytes(id)[0]) != std::string_view::npos) closing.push_back(id);
    }
    EXPECT_TRUE(!ids.empty() || m.accepting()) << "nothing can follow " << text;
    EXPECT_EQ(m.finished(), m.accepting() && ids.empty()) << text;
    if (ids.empty() || (m.accepting() && rng() % 8 == 0)) break;
    const std::vector<int32_t>& from = !closing.empty() && static_cast<int>(rng() % 64) < step ? closing : ids;
    const int32_t id = from[rng() % from.size()];
    EXPECT_TRUE(m.accept(id));
    text += vocabulary->bytes(id);
  }
  return text;
}

TEST(GrammarMatcher, masks_equal_the_definition_on_random_texts) {
  const std::vector<std::pair<std::string, GrammarPtr>> grammars{
      {"object", compile_json_object()},
      {"object with space", compile_json_object({.any_whitespace = true})},
      {"closed",
       schema_grammar(R"({"properties":{"name":{"type":"string"},"id":{"type":"integer"},"a":{"enum":["abc","ab",1]}},
                                    "required":["id"],"additionalProperties":false})")},
      {"open", schema_grammar(R"({"properties":{"name":{"type":"string"},"na":{"type":"number"}}})")},
      {"short strings",
       schema_grammar(R"({"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"maxItems":3})")},
      {"long strings", schema_grammar(R"({"type":"array","items":{"type":"string","minLength":5,"maxLength":40}})")},
      {"pattern", schema_grammar(R"({"type":"string","pattern":"^(ab|a\"|\\w)*[0-9]{2,}$","maxLength":30})")},
      {"recursion", schema_grammar(R"({"type":["array","string"],"items":{"$ref":"#"},"maxItems":2})")},
      {"counted, what follows looks alike", compile_regex("[a-z ]{2,9}[a-z]{0,6}hello\"?")},
      {"counted of two bytes", compile_regex("(ab){1,30}(abc|[a-z]{5,20})")},
      {"any text, then a word", compile_regex("(.|\\n){0,12}hello")},
      {"prose", compile_regex("[\\w \",]+: .*")},
      {"sums", compile_ebnf("root ::= term ([-+] term)*\nterm ::= [0-9]+ | \"(\" root \")\"")},
      {"lists", compile_ebnf("root ::= \"a\" root \"b\" | \"\" | \"ab\" root")},
      {"choice", compile_choice(std::vector<std::string>{"name", "na", "true", "x y", "café"})}};
  for (const auto& [name, grammar] : grammars) {
    SCOPED_TRACE(name);
    for (uint64_t seed = 0; seed < static_cast<uint64_t>(test::scaled(12)) && !HasFailure(); ++seed)
      checked_walk(grammar, json_vocabulary(), seed, 40);
  }
}

TEST(GrammarMatcher, finished_texts_are_json) {
  const GrammarPtr grammar = schema_grammar(
      R"({"properties":{"name":{"type":"string","maxLength":12},"id":{"type":"integer","minimum":-5,"maximum":1200},
          "list":{"type":"array","items":{"type":["number","null"]},"maxItems":4}},"required":["id"],"additionalProperties":false})");
  int whole = 0;
  for (uint64_t seed = 100; seed < 100 + static_cast<uint64_t>(test::scaled(40)); ++seed) {
    const std::string text = checked_walk(grammar, json_vocabulary(), seed, 120);
    GrammarMatcher m(grammar, json_vocabulary());
    ASSERT_TRUE(m.accept_bytes(text));
    if (!m.accepting()) continue;
    ++whole;
    const json::Value value = json::parse(text, "the walk");
    const int64_t id = value.get("id")->as_int("id");
    EXPECT_TRUE(id >= -5 && id <= 1200) << text;
    for (const json::Member& member : *value.object())
      EXPECT_TRUE(member.first == "name" || member.first == "id" || member.first == "list") << text;
  }
  EXPECT_GT(whole, 0);
}

TEST(GrammarMatcher, end_ids_stand_in_accepting_states_alone) {
  const auto vocabulary = vocabulary_of({"ab"});
  const int32_t end = vocabulary->end_ids()[0];
  GrammarMatcher m(compile_regex("ab|abab"), vocabulary);
  EXPECT_FALSE(has(mask_of(m), end));
  EXPECT_FALSE(m.accept(end));
  ASSERT_TRUE(m.accept(kFirstPiece));
  EXPECT_TRUE(m.accepting());
  EXPECT_FALSE(m.finished());
  EXPECT_TRUE(has(mask_of(m), end));
  GrammarMatcher fork = m;
  ASSERT_TRUE(fork.accept(end));
  EXPECT_TRUE(fork.finished());
  EXPECT_EQ(mask_of(fork), std::vector<uint64_t>(vocabulary->words(), 0));
  EXPECT_FALSE(fork.accept(kFirstPiece));
  ASSERT_TRUE(m.accept(kFirstPiece));  // the fork left it alone
  EXPECT_TRUE(m.finished());
  EXPECT_FALSE(m.accept(1));  // <s> is special
}

TEST(GrammarMatcher, a_refused_token_changes_nothing) {
  GrammarMatcher m(compile_regex("abc"), json_vocabulary());
  ASSERT_TRUE(m.accept_bytes("a"));
  EXPECT_FALSE(m.accept_bytes("bx"));
  EXPECT_FALSE(m.accept(-1));
  EXPECT_FALSE(m.accept(1 << 30));
  EXPECT_TRUE(m.accept_bytes("bc"));
  EXPECT_TRUE(m.finished());
}

TEST(GrammarMatcher, spelled_special_tokens_count_as_their_text) {
  const Tokenizer tokenizer = grammar_tokenizer({});
  const VocabularyIndex plain(tokenizer, {});
  EXPECT_FALSE(plain.usable(1));
  const auto spelled =
      std::make_shared<const VocabularyIndex>(tokenizer, std::vector<int32_t>{2}, std::vector<int32_t>{1});
  GrammarMatcher m(compile_regex("<s>x"), spelled);
  EXPECT_TRUE(has(mask_of(m), 1));
  EXPECT_TRUE(m.accept(1));
  EXPECT_THROW(VocabularyIndex(tokenizer, std::vector<int32_t>{100000}), Error);
}

TEST(GrammarMatcher, long_texts_take_bounded_memory_and_forks_survive) {
  const GrammarPtr grammar =
      schema_grammar(R"({"type":"array","items":{"type":"string","minLength":1,"maxLength":60000}})");
  GrammarMatcher m(grammar, json_vocabulary());
  ASSERT_TRUE(m.accept_bytes("[\""));
  const GrammarMatcher early = m;
  std::vector<uint64_t> bits(json_vocabulary()->words());
  for (int i = 0; i < 59'999; ++i) {
    ASSERT_TRUE(m.accept_bytes("x")) << i;
    if (i % 1000 == 0) m.mask(bits);
  }
  GrammarMatcher last = m;
  EXPECT_FALSE(last.accept_bytes("xx"));
  EXPECT_TRUE(m.accept_bytes("x\", \"y\"]"));
  EXPECT_TRUE(m.finished());
  GrammarMatcher again = early;  // of a generation that is gone
  EXPECT_FALSE(again.accept_bytes("\""));
  EXPECT_TRUE(again.accept_bytes("y\"]"));
  EXPECT_TRUE(again.finished());
}

TEST(GrammarMatcher, builders_compose_texts_and_schemas) {
  GrammarBuilder b;
  const auto tool = [&](std::string_view name, std::string_view schema) {
    static std::vector<std::unique_ptr<json::Value>> kept;
    kept.push_back(std::make_unique<json::Value>(json::parse(schema, "schema")));
    return b.sequence(
        {b.literal(json::dump(json::Value(name))), b.literal(", \"arguments\": "), b.json_schema(*kept.back(), {})});
  };
  const Expr call = b.sequence(
      {b.literal("<tool_call>\n{\"name\": "),
       b.choice(
           {tool("add", R"({"properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false})"),
            tool("say", R"({"properties":{"t":{"type":"string"}},"additionalProperties":false})")}),
       b.literal("}\n</tool_call>")});
  const GrammarPtr g = b.compile(b.repeat(call, 1, 2));
  EXPECT_TRUE(accepts(g, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
  EXPECT_TRUE(
      accepts(g,
              "<tool_call>\n{\"name\": \"say\", \"arguments\": {}}\n</tool_call><tool_call>\n{\"name\": \"add\", "
              "\"arguments\": {\"a\": 1}}\n</tool_call>"));
  EXPECT_FALSE(begins(g, "<tool_call>\n{\"name\": \"add\", \"arguments\": {}"));
  EXPECT_FALSE(begins(g, "<tool_call>\n{\"name\": \"sub"));
}

}  // namespace
}  // namespace hearth::text
