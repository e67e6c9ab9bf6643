// What the readers refuse, and in which words (R-02).
#include <limits>

#include "text/tokenizer_tables.h"

namespace hearth::text {
namespace {

void refuse_json(ErrorKind kind, std::string_view part, const std::string& json) {
  expect_error(kind, part, [&] { Tokenizer(parse_tokenizer_json(json, "t.json")); });
}
void corrupt_json(std::string_view part, const std::string& json) { refuse_json(ErrorKind::corrupt_file, part, json); }

std::string bpe(std::string_view vocab, std::string_view merges = "", std::string_view rest = "") {
  return fmt::format(R"({{"model": {{"type": "BPE", "vocab": {{{}}}, "merges": [{}]}}{}}})", vocab, merges, rest);
}

TEST(TokenizerJson, bad_vocabularies_are_corrupt_files) {
  corrupt_json("has the id 4294967296", bpe(R"("a": 0, "b": 4294967296)"));
  corrupt_json("has the id -1", bpe(R"("a": -1)"));
  corrupt_json("has the id 900000", bpe(R"("a": 0, "b": 900000)"));
  corrupt_json("have both the id 0", bpe(R"("a": 0, "b": 0)"));
  corrupt_json("duplicate key", bpe(R"("a": 0, "a": 1)"));
  corrupt_json("is empty", bpe(R"("": 0)"));
  corrupt_json("a vocabulary of 0 pieces", bpe(""));
  corrupt_json("expected an integer", bpe(R"("a": "0")"));
  corrupt_json("no \"model\"", "{}");
  corrupt_json("no \"vocab\"", R"({"model": {"type": "BPE", "merges": []}})");
  corrupt_json("expected an object", R"([])");
  corrupt_json("the limit is 4096", bpe("\"" + std::string(5000, 'a') + "\": 0"));
}

TEST(TokenizerJson, bad_merges_are_corrupt_files) {
  corrupt_json("names the unknown piece \"b\"", bpe(R"("a": 0)", R"("a b")"));
  corrupt_json("gives the unknown piece \"ab\"", bpe(R"("a": 0, "b": 1)", R"("a b")"));
  corrupt_json("two pieces and a space", bpe(R"("a": 0)", R"("a")"));
  corrupt_json("two pieces and a space", bpe(R"("a": 0)", R"("a ")"));
  corrupt_json("has 3 parts", bpe(R"("a": 0)", R"(["a", "a", "a"])"));
  corrupt_json("expected an array", bpe(R"("a": 0)", "7"));
}

TEST(TokenizerJson, bad_added_tokens_are_corrupt_files) {
  const auto added = [](std::string_view tokens) {
    return bpe(R"("a": 0)", "", fmt::format(R"(, "added_tokens": [{}])", tokens));
  };
  corrupt_json("have both the id 0", added(R"({"id": 0, "content": "b"})"));
  corrupt_json("is added twice", added(R"({"id": 1, "content": "b"}, {"id": 1, "content": "b"})"));
  corrupt_json("are both \"a\"", added(R"({"id": 1, "content": "a"})"));
  corrupt_json("is empty", added(R"({"id": 1, "content": ""})"));
  corrupt_json("the id -7", added(R"({"id": -7, "content": "b"})"));
  corrupt_json("no \"content\"", added(R"({"id": 1})"));
}

TEST(TokenizerJson, unknown_parts_are_named_with_those_that_are_known) {
  const auto with = [](std::string_view key, std::string_view type) {
    return bpe(R"("a": 0)", "", fmt::format(R"(, "{}": {{"type": "{}"}})", key, type));
  };
  refuse_json(ErrorKind::invalid_argument, "supported are BPE Unigram WordPiece",
              R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})");
  refuse_json(ErrorKind::invalid_argument, "supported are NFC", with("normalizer", "Rot13"));
  refuse_json(ErrorKind::invalid_argument, "supported are ByteLevel Split", with("pre_tokenizer", "UnicodeScripts"));
  refuse_json(ErrorKind::invalid_argument, "supported are ByteLevel ByteFallback", with("decoder", "CTC"));
  refuse_json(ErrorKind::invalid_argument, "supported are ByteLevel TemplateProcessing", with("post_processor", "X"));
  refuse_json(ErrorKind::invalid_argument, "does not compile",
              bpe(R"("a": 0)", "", R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}})"));
}

TEST(TokenizerJson, bad_templates_are_corrupt_files) {
  const auto with = [](std::string_view single, std::string_view ids) {
    return bpe(R"("a": 0)", "",
               fmt::format(R"(, "post_processor": {{"type": "TemplateProcessing", "single": [{}],
                            "special_tokens": {{"a": {{"ids": [{}]}}}}}})",
                           single, ids));
  };
  const std::string a = R"({"SpecialToken": {"id": "a"}})", text = R"({"Sequence": {"id": "A"}})";
  corrupt_json("template without the text", with(a, "0"));
  corrupt_json("the text twice", with(text + "," + text, "0"));
  corrupt_json("has the id 7", with(a + "," + text, "7"));
  corrupt_json("holds the id -1", with(a + "," + text, "-1"));
  corrupt_json("which special_tokens does not", with(R"({"SpecialToken": {"id": "b"}},)" + text, "0"));
}

TEST(TokenizerJson, nested_sequences_and_growing_texts_are_bounded) {
  std::string steps;
  for (int i = 0; i < 100; ++i) steps += std::string(i ? "," : "") + R"({"type": "NFC"})";
  corrupt_json("more than 64 steps",
               bpe(R"("a": 0)", "", R"(, "normalizer": {"type": "Sequence", "normalizers": [)" + steps + "]}"));
  const std::string twice = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"})";
  const Tokenizer t(parse_tokenizer_json(
      bpe(R"("a": 0)", "",
          R"(, "normalizer": {"type": "Sequence", "normalizers": [)" + twice + "," + twice + "," + twice + "]}"),
      "t.json"));
  EXPECT_EQ(t.encode("a", {}).size(), 4096u);
  expect_error(ErrorKind::invalid_argument, "grows a text beyond", [&] { t.encode(std::string(100000, 'a'), {}); });
}

TEST(GgufTokenizer, bad_metadata_are_corrupt_files) {
  const auto corrupt = [](std::string_view part, auto&& change) {
    GgufTokenizer g = sentencepiece_gguf({{"a", -1}});
    change(g);
    expect_error(ErrorKind::corrupt_file, part, [&] { Tokenizer(tables_from_gguf(g, "t.gguf")); });
  };
  corrupt("byte piece 3 is \"<0x-1>\"", [](GgufTokenizer& g) { g.tokens[3] = "<0x-1>"; });
  corrupt("byte piece 3 is \"<0x1>\"", [](GgufTokenizer& g) { g.tokens[3] = "<0x1>"; });
  corrupt("byte fallback without all", [](GgufTokenizer& g) { g.tokens[3] = "b", g.types[3] = 1; });
  corrupt("has the type 99", [](GgufTokenizer& g) { g.types[5] = 99; });
  corrupt("has the type 0", [](GgufTokenizer& g) { g.types[5] = 0; });
  corrupt("token_type has 1 members", [](GgufTokenizer& g) { g.types = {1}; });
  corrupt("scores has 1 members", [](GgufTokenizer& g) { g.scores = {1}; });
  corrupt("without scores", [](GgufTokenizer& g) { g.scores.clear(); });
  corrupt("has the score nan", [](GgufTokenizer& g) { g.scores[7] = std::numeric_limits<float>::quiet_NaN(); });
  corrupt("bos_token_id is 260", [](GgufTokenizer& g) { g.bos = 260; });
  corrupt("eos_token_id is -1", [](GgufTokenizer& g) { g.eos = -1; });
  corrupt("eot_token_id is", [](GgufTokenizer& g) { g.eot = int64_t{1} << 40; });
  corrupt("are both \"a\"", [](GgufTokenizer& g) {
    g.tokens.push_back("a");
    g.scores.push_back(0);
    g.types.push_back(1);
  });
  corrupt("tokens is empty", [](GgufTokenizer& g) { g = {.model = "llama"}; });
  corrupt("character map of 3 bytes", [](GgufTokenizer& g) { g.precompiled_charsmap = "abc"; });
  corrupt("claims a trie", [](GgufTokenizer& g) { g.precompiled_charsmap = std::string("\xff\xff\xff\x7f", 4); });
  corrupt("names the unknown piece", [](GgufTokenizer& g) { g.model = "gpt2", g.merges = {"a zz"}; });
}

TEST(GgufTokenizer, unknown_models_and_pre_tokenizers_are_named) {
  GgufTokenizer g = sentencepiece_gguf({{"a", -1}});
  g.model = "rwkv";
  expect_error(ErrorKind::invalid_argument, "supported are gpt2", [&] { tables_from_gguf(g, "t.gguf"); });
  g.model = "gpt2";
  g.pre = "no-such";
  expect_error(ErrorKind::invalid_argument, "pre-tokenizer \"no-such\"", [&] { tables_from_gguf(g, "t.gguf"); });
}

std::string varint(uint64_t v) {
  std::string out;
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  return out + static_cast<char>(v);
}
std::string message(uint32_t number, const std::string& body) {
  return varint(number << 3 | 2) + varint(body.size()) + body;
}
std::string piece(const std::string& text, int type) {
  return message(1, message(1, text) + std::string("\x15\0\0\0\0", 5) + "\x18" + varint(static_cast<uint64_t>(type)));
}

TEST(SentencePieceModel, bad_files_are_refused_at_every_cut) {
  const std::string whole = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1) +
                            message(2, "\x18\x02") + message(3, "\x18\x01");
  const auto load = [](const std::string& s) {
    return Tokenizer(parse_sentencepiece_model(std::as_bytes(std::span(s)), "t.model"));
  };
  EXPECT_EQ(load(whole).encode("a", {.add_special = false}), (Ids{0, 3}));  // U+2581 is unknown here
  int refused = 0;
  for (size_t n = 0; n < whole.size(); ++n) try {
      load(whole.substr(0, n));
    } catch (const Error&) {
      ++refused;
    }
  EXPECT_GE(refused, static_cast<int>(whole.size()) - 8);  // a cut between two fields may leave a model
  const auto corrupt = [&](std::string_view part, const std::string& s) {
    expect_error(ErrorKind::corrupt_file, part, [&] { load(s); });
  };
  corrupt("are left", message(1, "a").substr(0, 2));
  corrupt("varint without end", std::string(11, '\xff'));
  corrupt("wire type", std::string("\x0b", 1));
  corrupt("field number 0", std::string("\x02\x00", 2));
  corrupt("expected 2", std::string("\x08\x01", 2));
  corrupt("is empty", piece("", 1));
  corrupt("byte piece 1", piece("<unk>", 2) + piece("<0xZZ>", 6));
  corrupt("are both", piece("<unk>", 2) + piece("a", 1) + piece("a", 1));
  corrupt("bos_id is 1", piece("<unk>", 2));
  expect_error(ErrorKind::invalid_argument, "model type 4", [&] { load(piece("<unk>", 2) + message(2, "\x18\x04")); });
}

TEST(VocabularyFiles, bad_lines_are_refused) {
  expect_error(ErrorKind::corrupt_file, "\"[UNK]\" is not in the vocabulary",
               [] { tables_from_vocab_txt("a\nb\n", "vocab.txt"); });
  expect_error(ErrorKind::corrupt_file, "are both \"a\"", [] { tables_from_vocab_txt("[UNK]\na\na\n", "vocab.txt"); });
  expect_error(ErrorKind::corrupt_file, "names the unknown piece",
               [] { tables_from_vocab_merges(R"({"a": 0})", "#version: 0.2\na b\n", "vocab.json"); });
  const Tokenizer t(tables_from_vocab_merges(R"({"a": 0, "b": 1, "ab": 2})", "#version: 0.2\r\na b\r\n", "vocab.json"));
  EXPECT_EQ(t.encode("ab", {}), (Ids{2}));
}

// Small tables with the members of one or more config files over them.
struct Config {
  std::string tokenizer_config, special_tokens_map, added_tokens;
};
void apply(TokenizerTables& t, const Config& c) {
  const auto file = [](const std::string& text, const char* name) {
    return text.empty() ? std::nullopt : std::optional(TokenizerConfigFiles::File{text, name});
  };
  apply_config_files(t, {.tokenizer_config = file(c.tokenizer_config, "tokenizer_config.json"),
                         .special_tokens_map = file(c.special_tokens_map, "special_tokens_map.json"),
                         .added_tokens = file(c.added_tokens, "added_tokens.json")});
}
TokenizerTables letters() {
  return tables_from_vocab_merges(R"({"a": 0, "b": 1, "<x>": 2, "<": 3, "x": 4, ">": 5})", "", "vocab.json");
}
Tokenizer configured(const Config& c) {
  TokenizerTables t = letters();
  apply(t, c);
  return Tokenizer(std::move(t));
}
constexpr EncodeOptions kParsed = {.parse_special = true, .add_special = false};

TEST(TokenizerConfig, names_bos_and_eos_and_adds_tokens) {
  TokenizerTables t = tables_from_vocab_merges(R"({"a": 0, "b": 1})", "", "vocab.json");
  apply(t, {.tokenizer_config = R"({"added_tokens_decoder": {"2": {"content": "<x>", "special": true},
      "3": {"content": "<y>", "special": false, "normalized": false}}, "bos_token": "<x>", "add_bos_token": true})"});
  const Tokenizer tokenizer(t);
  EXPECT_EQ(tokenizer.encode("a<y><x>", {}), (Ids{2, 0, 3}));  // < x > are no pieces and vanish
  EXPECT_EQ(tokenizer.encode("<x>a", {.parse_special = true}), (Ids{2, 0}));
  expect_error(ErrorKind::corrupt_file, "have both the id 0",
               [&] { apply(t, {.tokenizer_config = R"({"added_tokens_decoder": {"0": {"content": "<z>"}}})"}); });
}

TEST(TokenizerConfig, named_tokens_of_the_vocabulary_are_special) {
  for (const char* config :
       {R"({"eos_token": "<x>"})", R"({"pad_token": {"content": "<x>", "lstrip": false}})",
        R"({"additional_special_tokens": ["<x>"]})", R"({"extra_special_tokens": [{"content": "<x>"}]})",
        R"({"extra_special_tokens": {"image_token": "<x>"}})"}) {
    const Tokenizer t = configured({.tokenizer_config = config});
    EXPECT_EQ(t.encode("a<x>b", kParsed), (Ids{0, 2, 1})) << config;
    EXPECT_EQ(t.encode("a<x>b", {.add_special = false}), (Ids{0, 3, 4, 5, 1})) << config;
    EXPECT_TRUE(t.is_special(2)) << config;
  }
  // No piece: the model has no row for it. Null: not named.
  EXPECT_EQ(configured({.tokenizer_config = R"({"pad_token": "<pad>", "bos_token": null})"}).vocab_size(), 6);
  const Tokenizer stripping = configured({.tokenizer_config = R"({"sep_token": {"content": "<x>", "rstrip": true}})"});
  EXPECT_EQ(stripping.encode("<x>  b", kParsed), (Ids{2, 1}));
}

TEST(TokenizerConfig, added_tokens_json_adds_where_the_config_lists_none) {
  const std::string added = R"({"<y>": 7, "<z>": 6})";
  const Tokenizer t = configured({.special_tokens_map = R"({"eos_token": "<y>"})", .added_tokens = added});
  EXPECT_EQ(t.encode("a<y><z>", kParsed), (Ids{0, 7, 6}));
  EXPECT_EQ(t.encode("a<z>", {.add_special = false}), (Ids{0, 6}));  // not special: found in any text
  EXPECT_TRUE(t.is_special(7));
  EXPECT_FALSE(t.is_special(6));
  EXPECT_EQ(Ids(t.end_ids().begin(), t.end_ids().end()), (Ids{7}));
  const Tokenizer listed =
      configured({.tokenizer_config = R"({"added_tokens_decoder": {"6": {"content": "<w>"}}})", .added_tokens = added});
  EXPECT_EQ(listed.vocab_size(), 7);
}

TEST(TokenizerConfig, special_tokens_map_counts_where_the_config_lists_no_added_tokens) {
  const std::string map = R"({"bos_token": {"content": "<x>"}, "additional_special_tokens": ["a"]})";
  const Tokenizer t = configured({.tokenizer_config = R"({"bos_token": "b"})", .special_tokens_map = map});
  EXPECT_EQ(t.bos(), 2);
  EXPECT_TRUE(t.is_special(0));
  const Tokenizer listed =
      configured({.tokenizer_config = R"({"bos_token": "b", "added_tokens_decoder": {}})", .special_tokens_map = map});
  EXPECT_EQ(listed.bos(), 1);
  EXPECT_FALSE(listed.is_special(0));
}

TEST(TokenizerConfig, what_the_tokenizers_own_file_adds_stays) {
  TokenizerTables t = parse_tokenizer_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
          "added_tokens": [{"id": 1, "content": "<t>", "special": false}]})",
      "tokenizer.json");
  apply(t, {.special_tokens_map = R"({"eos_token": "<t>"})", .added_tokens = R"({"<t>": 1, "<u>": 2})"});
  EXPECT_EQ(t.added.size(), 2u);
  EXPECT_FALSE(t.added[0].special);
  EXPECT_EQ(t.end_ids, (Ids{1}));
  // Two ids of one spelling: a contradiction.
  expect_error(ErrorKind::corrupt_file, "pieces 1 and 5 are both \"<t>\"",
               [&] { apply(t, {.added_tokens = R"({"<t>": 5})"}); });
}

TEST(TokenizerConfig, bad_members_are_corrupt_files_with_their_place) {
  const auto corrupt = [](std::string_view part, const Config& c) {
    expect_error(ErrorKind::corrupt_file, part, [&] { configured(c); });
  };
  corrupt("tokenizer_config.json: expected an object, found an array", {.tokenizer_config = "[]"});
  corrupt("special_tokens_map.json: expected an object, found a string", {.special_tokens_map = "\"x\""});
  corrupt("added_tokens.json: expected an object, found a number", {.added_tokens = "1"});
  corrupt("special_tokens_map.json: eos_token: expected a string, found a number",
          {.special_tokens_map = R"({"eos_token": 5})"});
  corrupt("special_tokens_map.json: bos_token: no \"content\"", {.special_tokens_map = R"({"bos_token": {}})"});
  corrupt("additional_special_tokens: expected an array",
          {.tokenizer_config = R"({"additional_special_tokens": "x"})"});
  corrupt("additional_special_tokens: expected a string",
          {.tokenizer_config = R"({"additional_special_tokens": [7]})"});
  corrupt("added_tokens.json: \"<y>\": expected an integer, found a string", {.added_tokens = R"({"<y>": "7"})"});
  corrupt("added_tokens.json: \"<y>\": the id -1", {.added_tokens = R"({"<y>": -1})"});
  corrupt("have both the id 0", {.added_tokens = R"({"<y>": 0})"});
  corrupt("has the id 99999999", {.added_tokens = R"({"<y>": 99999999})"});
  corrupt("is empty", {.added_tokens = R"({"": 6})"});
  corrupt("do_lower_case: expected a boolean", {.tokenizer_config = R"({"do_lower_case": "no"})"});
  corrupt("special_tokens_map.json: ", {.special_tokens_map = "{"});
}

TEST(TokenizerConfig, says_whether_a_bert_vocabulary_keeps_case_and_accents) {
  const auto ids = [](const std::string& config) {
    TokenizerTables t =
        tables_from_vocab_txt("[UNK]\n[CLS]\n[SEP]\ne\nE\n\u00e9\n\u00c9\n\u4e2d\u4e2d\n\u4e2d\n", "vocab.txt");
    apply(t, {.tokenizer_config = config});
    return Tokenizer(std::move(t)).encode("e E \u00e9 \u00c9 \u4e2d\u4e2d", {.add_special = false});
  };
  EXPECT_EQ(ids("{}"), (Ids{3, 3, 3, 3, 8, 8}));
  EXPECT_EQ(ids(R"({"do_lower_case": true})"), (Ids{3, 3, 3, 3, 8, 8}));
  EXPECT_EQ(ids(R"({"do_lower_case": false})"), (Ids{3, 4, 5, 6, 8, 8}));
  EXPECT_EQ(ids(R"({"do_lower_case": false, "strip_accents": true})"), (Ids{3, 4, 3, 4, 8, 8}));
  EXPECT_EQ(ids(R"({"do_lower_case": true, "strip_accents": false})"), (Ids{3, 3, 5, 5, 8, 8}));
  EXPECT_EQ(ids(R"({"strip_accents": false, "tokenize_chinese_chars": false})"), (Ids{3, 3, 5, 5, 7}));
  // A tokenizer.json has its own; the config's explicit word comes later, as with the transformers library.
  TokenizerTables own = parse_tokenizer_json(
      R"({"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "E": 1, "e": 2}},
          "normalizer": {"type": "BertNormalizer", "lowercase": false}})",
      "tokenizer.json");
  apply(own, {.tokenizer_config = "{}"});
  EXPECT_EQ(Tokenizer(own).encode("E", {}), (Ids{1}));
  apply(own, {.tokenizer_config = R"({"do_lower_case": true})"});
  EXPECT_EQ(Tokenizer(own).encode("E", {}), (Ids{2}));
}

}  // namespace
}  // namespace hearth::text
