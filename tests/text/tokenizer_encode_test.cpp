// Encoding and decoding with vocabularies small enough to follow by hand.
#include <algorithm>

#include "text/tokenizer_tables.h"

namespace hearth::text {
namespace {

Tokenizer from_json(const std::string& json) { return Tokenizer(parse_tokenizer_json(json, "test.json")); }
Tokenizer from_gguf(const GgufTokenizer& g) { return Tokenizer(tables_from_gguf(g, "test.gguf")); }
constexpr EncodeOptions kPlain = {.parse_special = false, .add_special = false};

TEST(ByteLevelBpe, lowest_rank_wins_then_the_leftmost) {
  const Tokenizer t = from_json(byte_level_json({{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"x", "x"}}));
  EXPECT_EQ(t.encode("abc", kPlain), (Ids{258}));  // b c first, then a bc; a b is never formed
  EXPECT_EQ(t.encode("abd", kPlain), (Ids{257, 'd'}));
  EXPECT_EQ(t.encode("xxx", kPlain), (Ids{259, 'x'}));  // the left pair
}

TEST(ByteLevelBpe, heap_and_scan_agree) {
  const Tokenizer t = from_json(byte_level_json({{"a", "a"}, {"aa", "aa"}, {"aa", "a"}, {"a", "b"}, {"aaaa", "aaa"}}));
  for (size_t n = 1; n < 100; ++n) {
    // A run of n merges pairwise from the left: n / 4 pieces of four, then what is left.
    Ids want(n / 4, 257);
    if (n % 4 >= 2) want.push_back(n % 4 == 3 ? 258 : 256);
    if (n % 4 == 1) want.push_back('a');
    if (n >= 7 && n % 4 == 3) want.pop_back(), want.back() = 260;
    EXPECT_EQ(t.encode(std::string(n, 'a'), kPlain), want) << n;
  }
}

TEST(ByteLevelBpe, any_bytes_round_trip) {
  const Tokenizer t = from_json(byte_level_json({{"t", "h"}, {"Ġ", "th"}}));
  std::string all;
  for (int b = 255; b >= 0; --b) all += static_cast<char>(b);
  const Ids ids = t.encode(all, kPlain);
  std::string joined;
  for (const int32_t id : ids) joined += t.piece_bytes(id, joined.empty());
  EXPECT_EQ(joined, all);
}

TEST(ByteLevelBpe, ignore_merges_takes_whole_words) {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"a", "b"}, {"b", "c"}, {"ab", "c"}, {"bc", "d"}, {"a", "bcd"}};
  EXPECT_EQ(from_json(byte_level_json(merges)).encode("abcd", kPlain), (Ids{258, 'd'}));
  EXPECT_EQ(from_json(byte_level_json(merges, "\"ignore_merges\": true,")).encode("abcd", kPlain), (Ids{260}));
}

TEST(SpecialTokens, text_from_users_never_gives_one) {
  const Tokenizer t = from_json(byte_level_json({{"<", "/"}, {"s", ">"}, {"</", "s>"}}));
  const int32_t special = *t.id_of("</s>");
  EXPECT_TRUE(t.is_special(special));
  const Ids ids = t.encode("a</s>", {.parse_special = false, .add_special = false});
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [&](int32_t id) { return t.is_special(id); }), 0);
  EXPECT_EQ(t.encode("a</s>b", {.parse_special = true, .add_special = false}), (Ids{'a', special, 'b'}));
  EXPECT_EQ(t.decode(t.encode("a</s>b", {.parse_special = true}), true), "ab");
  EXPECT_EQ(t.decode(t.encode("a</s>b", {.parse_special = true}), false), "<s>a</s>b");
}

TEST(SpecialTokens, exactly_one_bos) {
  const Tokenizer t = from_json(byte_level_json({}));
  const int32_t bos = *t.id_of("<s>");
  TokenizerTables tables = parse_tokenizer_json(byte_level_json({}), "test.json");
  apply_config_files(tables,
                     {.tokenizer_config = {{R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})", "config"}}});
  const Tokenizer named(std::move(tables));
  EXPECT_TRUE(named.adds_bos());
  EXPECT_EQ(named.bos_text(), "<s>");
  EXPECT_EQ(named.eos_text(), "</s>");
  EXPECT_EQ(named.encode("a", {.parse_special = true}), (Ids{bos, 'a'}));
  EXPECT_EQ(named.encode("<s>a", {.parse_special = true}), (Ids{bos, 'a'}));
  EXPECT_EQ(named.encode("<s>a", {.parse_special = true, .add_special = false}), (Ids{bos, 'a'}));
  EXPECT_EQ(named.encode("", {}), (Ids{bos}));
  // Without parse_special the text spells it with bytes.
  EXPECT_EQ(named.encode("<s>", {}), (Ids{bos, '<', 's', '>'}));
}

TEST(SentencePieceBpe, scores_decide_and_equal_scores_go_left) {
  const GgufTokenizer g = sentencepiece_gguf(
      {{"\u2581", -9}, {"a", -9}, {"b", -9}, {"ab", -2}, {"ba", -1}, {"aa", -3}, {"\u2581a", -4}, {"bab", -1}});
  const Tokenizer t = from_gguf(g);
  const int32_t f = kFirstPiece;
  EXPECT_EQ(t.encode("aba", kPlain), (Ids{f + 6, f + 4}));     // ▁a, ba: the higher score first
  EXPECT_EQ(t.encode("aaa", kPlain), (Ids{f, f + 5, f + 1}));  // ▁, aa, a: the leftmost pair
  EXPECT_EQ(t.encode("a", {}), (Ids{1, f + 6}));               // BOS by default
}

TEST(SentencePieceBpe, unknown_characters_and_broken_bytes_become_byte_pieces) {
  const Tokenizer t = from_gguf(sentencepiece_gguf({{"\u2581", -1}, {"a", -2}}));
  const int32_t f = kFirstPiece;
  EXPECT_EQ(t.encode("\u00e9", kPlain), (Ids{f, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t.encode("a\xFF", kPlain), (Ids{f, f + 1, 3 + 0xFF}));
  EXPECT_EQ(t.decode(t.encode("a \u00e9", kPlain), true), "a \u00e9");
  EXPECT_EQ(t.decode(t.encode("a\xF0\x9F", kPlain), true), "a\uFFFD");
}

TEST(SentencePieceBpe, the_dummy_prefix_is_dropped_from_the_first_piece_alone) {
  const Tokenizer t = from_gguf(sentencepiece_gguf({{"\u2581", -1}, {"a", -2}, {"\u2581a", -1}}));
  const int32_t word = kFirstPiece + 2;
  EXPECT_EQ(t.piece_bytes(word, true), "a");
  EXPECT_EQ(t.piece_bytes(word, false), " a");
  EXPECT_EQ(t.decode(Ids{word, word}, true), "a a");
  GgufTokenizer bare = sentencepiece_gguf({{"\u2581", -1}, {"a", -2}, {"\u2581a", -1}});
  bare.add_space_prefix = false;
  EXPECT_EQ(from_gguf(bare).encode("a", kPlain), (Ids{kFirstPiece + 1}));
  EXPECT_EQ(from_gguf(bare).piece_bytes(word, true), " a");
}

TEST(SentencePieceBpe, user_text_gives_no_control_or_byte_piece) {
  const Tokenizer t =
      from_gguf(sentencepiece_gguf({{"\u2581", -9}, {"<", -5}, {"s", -5}, {">", -5}, {"<s", -1}, {"0x", -1}}));
  for (const char* text : {"<s>", "</s>", "<unk>"})
    for (const int32_t id : t.encode(text, kPlain)) EXPECT_FALSE(t.is_special(id)) << text;
  const Ids spelled = t.encode("<0x41>", kPlain);
  EXPECT_EQ(std::count(spelled.begin(), spelled.end(), 3 + 0x41), 0);
  EXPECT_EQ(t.encode("<s>", {.parse_special = true, .add_special = false}), (Ids{1}));
}

TEST(SentencePieceBpe, user_defined_pieces_stay_whole) {
  GgufTokenizer g = sentencepiece_gguf({{"\u2581", -9}, {"a", -9}, {"\u2581a", -1}, {"\n", -9}});
  for (const char* piece : {"  ", "\n\n"}) {
    g.tokens.push_back(piece);
    g.scores.push_back(-1000);
    g.types.push_back(4);
  }
  g.add_space_prefix = false;
  const Tokenizer t = from_gguf(g);
  const int32_t f = kFirstPiece;
  EXPECT_EQ(t.encode("  a\n\n\n", kPlain), (Ids{f + 4, f + 1, f + 5, f + 3}));
  EXPECT_EQ(t.decode(Ids{f + 4, f + 1, f + 5}, false), "  a\n\n");
}

TEST(Unigram, the_best_sum_wins_and_unknowns_fuse) {
  const Tokenizer t = from_json(R"({"model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0], ["a", -2], ["b", -2], ["ab", -3], ["abc", -9], ["c", -1]]}, "decoder": {"type": "Fuse"}})");
  EXPECT_EQ(t.encode("abc", kPlain), (Ids{3, 5}));  // -4 beats -5 and -9
  EXPECT_EQ(t.encode("axyb", kPlain), (Ids{1, 0, 2}));
}

TEST(WordPiece, longest_first_and_whole_words_unknown) {
  const Tokenizer t(tables_from_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nunaff\n##x\n", "vocab.txt"));
  EXPECT_EQ(t.encode("UNAFFABLE", {}), (Ids{2, 7, 6, 3}));
  EXPECT_EQ(t.encode("unq un", kPlain), (Ids{1, 4}));
  EXPECT_EQ(t.encode(std::string(101, 'x'), kPlain), (Ids{1}));
  EXPECT_EQ(t.decode(Ids{4, 8, 4}, true), "unx un");
}

TEST(AddedTokens, longest_first_strips_and_single_words) {
  const std::string json = R"({"added_tokens": [
      {"id": 2, "content": "<t>", "special": false, "normalized": false},
      {"id": 3, "content": "<t><t>", "special": false, "normalized": false},
      {"id": 4, "content": "<l>", "lstrip": true, "normalized": false},
      {"id": 5, "content": "<r>", "rstrip": true, "normalized": false},
      {"id": 6, "content": "word", "single_word": true, "normalized": false},
      {"id": 7, "content": "CASE", "normalized": true}],
      "normalizer": {"type": "Lowercase"},
      "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, " ": 8}, "merges": []}})";
  const Tokenizer t = from_json(json);
  EXPECT_EQ(t.encode("<t><t><t>", kPlain), (Ids{3, 2}));
  EXPECT_EQ(t.encode("a  <l>a", kPlain), (Ids{1, 4, 1}));
  EXPECT_EQ(t.encode("<r>  a", kPlain), (Ids{5, 1}));
  EXPECT_EQ(t.encode("a word a", kPlain), (Ids{1, 8, 6, 8, 1}));
  EXPECT_EQ(t.encode("aworda", kPlain), (Ids{1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(t.encode("Case", kPlain), (Ids{7}));
}

TEST(Gguf, end_ids_are_named_or_known_by_spelling) {
  GgufTokenizer g = sentencepiece_gguf({{"a", -1}});
  g.tokens.push_back("<end_of_turn>");
  g.scores.push_back(0);
  g.types.push_back(3);
  const int32_t turn = static_cast<int32_t>(g.tokens.size()) - 1;
  const Tokenizer named = from_gguf(g);
  EXPECT_EQ(Ids(named.end_ids().begin(), named.end_ids().end()), (Ids{2, turn}));
  g.types.back() = 1;  // not a control token: mere text
  const Tokenizer bare = from_gguf(g);
  EXPECT_EQ(Ids(bare.end_ids().begin(), bare.end_ids().end()), (Ids{2}));
}

TEST(Gguf, marks_of_turns_are_control_tokens_whatever_the_file_calls_them) {
  GgufTokenizer g = sentencepiece_gguf({{"a", -1}});
  for (const char* token : {"<|im_start|>", "<|im_end|>", "<|tool|>"}) {
    g.tokens.push_back(token);
    g.scores.push_back(0);
    g.types.push_back(4);
  }
  const int32_t start = kFirstPiece + 1, end = start + 1, tool = end + 1;
  const Tokenizer t = from_gguf(g);
  EXPECT_TRUE(t.is_special(start) && t.is_special(end));
  EXPECT_FALSE(t.is_special(tool));
  EXPECT_EQ(Ids(t.end_ids().begin(), t.end_ids().end()), (Ids{2, end}));
  const Ids text = t.encode("<|im_start|>a<|im_end|><|tool|>", kPlain);
  EXPECT_EQ(std::count(text.begin(), text.end(), start) + std::count(text.begin(), text.end(), end), 0);
  EXPECT_EQ(text.back(), tool);
  // An end token that the file names by its id alone.
  g.types[static_cast<size_t>(tool)] = 1;
  EXPECT_FALSE(from_gguf(g).is_special(tool));
  g.eot = tool;
  EXPECT_TRUE(from_gguf(g).is_special(tool));
  g.types.clear();
  EXPECT_TRUE(from_gguf(g).is_special(tool));
}

TEST(Decode, ids_outside_of_the_vocabulary_are_refused) {
  const Tokenizer t = from_json(byte_level_json({}));
  EXPECT_EQ(t.vocab_size(), 258);
  for (const int32_t id : {-1, 258, INT32_MAX}) {
    expect_error(ErrorKind::invalid_argument, "outside of the vocabulary", [&] { t.decode(Ids{id}, false); });
    expect_error(ErrorKind::invalid_argument, "outside of the vocabulary", [&] { t.piece_bytes(id, true); });
    EXPECT_FALSE(t.is_special(id));
  }
}

}  // namespace
}  // namespace hearth::text
