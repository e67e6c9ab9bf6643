// Special tokens that users spell: text for every family of tokenizers, whatever stands around it.
#include <algorithm>
#include <random>

#include "support/scale.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer_tables.h"

namespace hearth::text {
namespace {

// A text whose bracketed parts are quoted: "<s>[<s>]".
struct Marked {
  std::string text;
  std::vector<ByteRange> quoted;
};
Marked parse(std::string_view source) {
  Marked m;
  size_t begin = 0;
  for (const char c : source) {
    if (c == '[') begin = m.text.size();
    else if (c == ']') m.quoted.push_back({begin, m.text.size()});
    else m.text += c;
  }
  return m;
}

Ids encode(const Tokenizer& t, const Marked& m, bool around = false) {
  return t.encode(m.text, {.parse_special = true, .add_special = around, .quoted = m.quoted});
}
Ids encode(const Tokenizer& t, std::string_view source, bool around = false) {
  return encode(t, parse(source), around);
}
Ids plain(const Tokenizer& t, std::string_view text) {
  return t.encode(text, {.parse_special = false, .add_special = false});
}
Ids joined(std::initializer_list<Ids> parts) {
  Ids out;
  for (const Ids& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

Tokenizer byte_level(std::string_view added = "") {
  std::string json = byte_level_json({{"<", "/"}, {"s", ">"}, {"</", "s>"}, {"a", "b"}});
  if (!added.empty()) json.replace(json.find("[") + 1, 0, added);
  return Tokenizer(parse_tokenizer_json(json, "t.json"));
}

TEST(QuotedTokens, byte_level_bpe) {
  const Tokenizer t = byte_level();
  const Ids s = {*t.id_of("<s>")}, e = {*t.id_of("</s>")};
  EXPECT_EQ(encode(t, "<s>[<s>ab</s>]</s>"), joined({s, plain(t, "<s>ab</s>"), e}));
  EXPECT_EQ(encode(t, "[<s>]"), plain(t, "<s>"));
  EXPECT_EQ(encode(t, "<[s]>"), plain(t, "<s>"));  // one byte is enough
  EXPECT_EQ(encode(t, "[<s]>"), plain(t, "<s>"));
  EXPECT_EQ(encode(t, "<s[>]"), plain(t, "<s>"));
  EXPECT_EQ(encode(t, "[a]<s>[b]"), joined({plain(t, "a"), s, plain(t, "b")}));
  // Without parse_special nothing is special; what is quoted makes no difference.
  EXPECT_EQ(t.encode("<s>", {.parse_special = false, .add_special = false, .quoted = {}}), plain(t, "<s>"));
}

TEST(QuotedTokens, a_quoted_bos_is_no_bos) {
  const Tokenizer t = [] {
    TokenizerTables tables = parse_tokenizer_json(byte_level_json({}), "t.json");
    tables.bos = 256;
    return Tokenizer(std::move(tables));
  }();
  const Ids s = {*t.id_of("<s>")};
  EXPECT_EQ(encode(t, "<s>a", true), joined({s, plain(t, "a")}));
  EXPECT_EQ(encode(t, "[<s>]a", true), joined({s, plain(t, "<s>a")}));
}

TEST(QuotedTokens, longer_tokens_may_not_hide_the_templates_own) {
  const Tokenizer t = byte_level(R"({"id": 300, "content": "<s>x", "special": true, "normalized": false},
      {"id": 301, "content": "b<", "special": true, "normalized": false},
      {"id": 302, "content": "tool", "special": false, "normalized": false},
      {"id": 303, "content": "tools", "special": true, "normalized": false},)");
  const Ids s = {*t.id_of("<s>")};
  EXPECT_EQ(encode(t, "<s>x"), (Ids{300}));
  EXPECT_EQ(encode(t, "<s>[x]"), joined({s, plain(t, "x")}));  // not lengthened
  EXPECT_EQ(encode(t, "[b]<s>"), joined({plain(t, "b"), s}));  // not swallowed
  EXPECT_EQ(encode(t, "tool[s]"), joined({{302}, plain(t, "s")}));
  EXPECT_EQ(encode(t, "[tool]"), (Ids{302}));  // not special: found in any text
  EXPECT_EQ(encode(t, "[tools]"), plain(t, "tools"));
}

TEST(QuotedTokens, sentencepiece_bpe) {
  const GgufTokenizer g = sentencepiece_gguf({{"\u2581", -9}, {"a", -9}, {"<", -9}, {"s", -9}, {">", -9}, {"<s", -1}});
  const Tokenizer t(tables_from_gguf(g, "t.gguf"));
  EXPECT_EQ(encode(t, "<s>[a<s>]</s>"), joined({{1}, plain(t, "a<s>"), {2}}));
  EXPECT_EQ(encode(t, "[<s>]"), plain(t, "<s>"));
  for (const int32_t id : encode(t, "[<s></s><unk><0x41>]")) EXPECT_TRUE(id > 2 && id != 3 + 0x41) << id;
}

TEST(QuotedTokens, unigram) {
  const Tokenizer t(parse_tokenizer_json(R"({"added_tokens": [{"id": 6, "content": "</s>", "special": true}],
      "model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0], ["a", -2], ["<", -2], ["/", -3], ["s", -9], [">", -1], ["</s>", 0]]},
      "decoder": {"type": "Fuse"}})",
                                         "t.json"));
  EXPECT_EQ(encode(t, "a</s>[a</s>]"), (Ids{1, 6, 1, 2, 3, 4, 5}));
}

TEST(QuotedTokens, word_piece) {
  const Tokenizer t(tables_from_vocab_txt("[PAD]\n[UNK]\n(CLS)\n[CLS]\n[SEP]\na\n(\ncls\n)\n", "vocab.txt"));
  const auto quoted = [&](std::string_view text) {
    const ByteRange all{0, text.size()};
    return t.encode(text, {.parse_special = true, .add_special = false, .quoted = {&all, 1}});
  };
  EXPECT_EQ(t.encode("[SEP]a", {.parse_special = true, .add_special = false}), (Ids{4, 5}));
  EXPECT_EQ(quoted("[SEP]a"), (Ids{1, 1, 1, 5}));  // "[", "sep", "]" are no pieces
  EXPECT_EQ(quoted("(CLS)"), (Ids{6, 7, 8}));
}

// A special token that is looked for in normalized text, as in files of some converted SentencePiece models.
Tokenizer normalizing(const std::string& normalizer) {
  return Tokenizer(parse_tokenizer_json(
      R"({"added_tokens": [{"id": 2, "content": "<s>", "special": true, "normalized": true}],
          "normalizer": )" +
          normalizer +
          R"(, "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "<": 3, "s": 4, ">": 5,
          "\u2581": 6, "\u00e9": 7, "A": 8}, "merges": []}})",
      "t.json"));
}

TEST(QuotedTokens, behind_a_normalizer) {
  const Tokenizer spaces = normalizing(R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})");
  EXPECT_EQ(encode(spaces, "<s> [a <s>]<s>"), (Ids{2, 6, 1, 6, 3, 4, 5, 2}));
  const Tokenizer lower = normalizing(R"({"type": "Lowercase"})");
  EXPECT_EQ(encode(lower, "<S>[<S>]"), (Ids{2, 3, 4, 5}));
  // What follows the template's token composes with nothing of it.
  const Tokenizer nfc = normalizing(R"({"type": "NFC"})");
  EXPECT_EQ(encode(nfc, "<s>[e\u0301<s>]<s>[\u00e9]"), (Ids{2, 7, 3, 4, 5, 2, 7}));
  EXPECT_EQ(encode(nfc, "<s[\u0338>]"), plain(nfc, "<s\u0338>"));
  const Tokenizer squeeze = normalizing(R"({"type": "Strip", "strip_left": true, "strip_right": true})");
  EXPECT_EQ(encode(squeeze, "  <s>[ <s> ]<s> "), (Ids{2, 0, 3, 4, 5, 0, 2}));
}

// Every step gives the text that it gives without tracking, and tells for each byte where it came from: with the
// quoted parts in capitals and the rest in small letters or the other way round, no byte ends on the wrong side.
TEST(QuotedTokens, normalizers_keep_the_origin_of_every_byte) {
  const std::vector<std::vector<NormalizerStep>> chains = {
      {UnicodeForm{UnicodeForm::Form::nfc}},
      {UnicodeForm{UnicodeForm::Form::nfd}},
      {UnicodeForm{UnicodeForm::Form::nfkc}},
      {UnicodeForm{UnicodeForm::Form::nfkd}, StripAccents{}},
      {StripSpace{}, Prepend{"\u2581"}, ReplaceAll{.pattern = " ", .content = "\u2581"}},
      {ReplaceAll{.pattern = " {2,}", .is_regex = true, .content = " "}, NmtNormalizer{}},
      {BertNormalizer{.lowercase = false}},
      {SentencePieceNormalizer{}},
      {SentencePieceNormalizer{.add_dummy_prefix = false, .remove_extra_whitespaces = false}},
      {SentencePieceNormalizer{.whitespace_as_suffix = true}},
      {ByteAlphabetNormalizer{}},
      {},
  };
  const std::vector<std::string> parts = {"a",      "b",      " ",      "  ",     "\n",
                                          "\u0301", "\u00e9", "\uff43", "\u4e2d", "\u1e9b\u0323",
                                          "\xff",   "\u2581", "\u00a0", "\ufb01"};
  std::mt19937 random(5);
  for (const auto& steps : chains) {
    const Normalizer n(steps, "test");
    for (int round = 0; round < static_cast<int>(test::scaled(400)); ++round) {
      Marked m;
      std::string small;  // the same, with other letters where it is quoted
      for (uint32_t i = random() % 12; i > 0; --i) {
        std::string part = parts[random() % parts.size()];
        small += part;
        if (random() % 2) {
          if (part == "a" || part == "b") part = part == "a" ? "X" : "Y";
          m.quoted.push_back({m.text.size(), m.text.size() + part.size()});
        }
        m.text += part;
      }
      std::vector<ByteRange> quoted = m.quoted;
      const std::string made = n.apply(m.text, quoted);
      ASSERT_EQ(made, n.apply(m.text)) << m.text;
      std::string side(made.size(), '.');
      for (const ByteRange& q : quoted) {
        ASSERT_TRUE(q.begin < q.end && q.end <= made.size()) << m.text;
        std::fill(side.begin() + static_cast<ptrdiff_t>(q.begin), side.begin() + static_cast<ptrdiff_t>(q.end), 'q');
      }
      for (size_t i = 0; i < made.size(); ++i) {
        if (made[i] == 'X' || made[i] == 'Y') {
          ASSERT_EQ(side[i], 'q') << m.text << " to " << made;
        }
        const bool composed = i + 1 < made.size() && static_cast<unsigned char>(made[i + 1]) >= 0x80;
        if ((made[i] == 'a' || made[i] == 'b') && !composed) {
          ASSERT_TRUE(side[i] == '.' || m.text.find(made[i]) == std::string::npos) << m.text << " to " << made;
        }
      }
    }
  }
}

// Texts made of spellings, cut into quoted and own stretches at random. What the template wrote becomes the special
// tokens that it spells and all between is plain text.
TEST(QuotedTokens, random_cuts_equal_the_parts_one_by_one) {
  const Tokenizer t = byte_level();
  const std::vector<std::string> parts = {"<s>", "</s>", "<", "s", ">", "/", "ab", " ", "<s", "s>", "\u00e9"};
  const std::vector<std::string> specials = {"<s>", "</s>"};
  std::mt19937 random(11);
  for (int round = 0; round < static_cast<int>(test::scaled(4000)); ++round) {
    Marked m;
    std::string side;
    for (uint32_t i = random() % 14; i > 0; --i) {
      m.text += parts[random() % parts.size()];
      const char mark = random() % 2 ? 'q' : '.';
      side.resize(m.text.size(), mark);
    }
    for (size_t i = 0; i < side.size(); ++i)
      if (side[i] == 'q') {
        if (i > 0 && side[i - 1] == 'q') m.quoted.back().end = i + 1;
        else m.quoted.push_back({i, i + 1});
      }
    Ids want;
    size_t done = 0;
    const auto text_until = [&](size_t end) {
      const Ids ids = plain(t, std::string_view(m.text).substr(done, end - done));
      want.insert(want.end(), ids.begin(), ids.end());
    };
    for (size_t at = 0; at < m.text.size();) {
      const auto here = std::find_if(specials.begin(), specials.end(), [&](const std::string& s) {
        return m.text.compare(at, s.size(), s) == 0 && side.substr(at, s.size()).find('q') == std::string::npos;
      });
      if (here == specials.end()) {
        ++at;
        continue;
      }
      text_until(at);
      want.push_back(*t.id_of(*here));
      done = at += here->size();
    }
    text_until(m.text.size());
    ASSERT_EQ(encode(t, m), want) << m.text << '\n' << side;
    ASSERT_EQ(t.decode(want, false), m.text);
  }
}

TEST(QuotedTokens, stretches_must_lie_in_the_text_in_order) {
  const Tokenizer t = byte_level();
  const auto refused = [&](std::vector<ByteRange> quoted) {
    expect_error(ErrorKind::invalid_argument, "quoted stretch",
                 [&] { t.encode("abc", {.parse_special = true, .quoted = quoted}); });
  };
  refused({{0, 4}});
  refused({{2, 1}});
  refused({{0, 2}, {1, 3}});
  EXPECT_EQ(
      t.encode("ab", {.parse_special = true, .add_special = false, .quoted = std::vector<ByteRange>{{0, 1}, {1, 2}}}),
      plain(t, "ab"));
}

}  // namespace
}  // namespace hearth::text
