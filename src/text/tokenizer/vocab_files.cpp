// vocab.json with merges.txt (GPT-2), vocab.txt (BERT).
#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {
namespace {

// Calls f(line) for each line, without its line end.
template <class F>
void each_line(std::string_view text, F&& f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line);
  }
}

}  // namespace

TokenizerTables tables_from_vocab_merges(std::string_view vocab_json, std::string_view merges_txt,
                                         std::string_view what) {
  TokenizerTables t;
  t.what = what;
  t.model = TokenModel::bpe;
  const json::Value root = json::parse(vocab_json, what);
  const json::Object& vocab = root.as_object(what);
  VocabularyBuilder vocabulary(t, vocab.size());
  for (const json::Member& m : vocab) vocabulary.add(m.second.as_int(t.what), m.first);
  bool first = true;
  each_line(merges_txt, [&](std::string_view line) {
    const bool header = first && line.starts_with("#version");
    first = false;
    if (!header && !line.empty()) vocabulary.add_merge(line);
  });
  t.pre_tokenizers = {ByteLevelSplit{.add_prefix_space = false, .use_regex = true}};
  t.decoders = {DecodeByteLevel{}};
  if (const auto end = vocabulary.find("<|endoftext|>")) {
    t.added.push_back({.id = *end, .text = "<|endoftext|>", .special = true});
    t.bos = *end;
    t.end_ids = {*end};
  }
  return t;
}

TokenizerTables tables_from_vocab_txt(std::string_view vocab_txt, std::string_view what) {
  TokenizerTables t;
  t.what = what;
  t.model = TokenModel::word_piece;
  t.continuing_subword_prefix = "##";
  size_t lines = 0;
  each_line(vocab_txt, [&](std::string_view) { ++lines; });
  VocabularyBuilder vocabulary(t, lines);
  int64_t id = 0;
  each_line(vocab_txt, [&](std::string_view line) { vocabulary.add(id++, line); });
  t.unk = vocabulary.require("[UNK]", "the unknown token");
  t.normalizers = {BertNormalizer{}};
  t.pre_tokenizers = {BertSplit{}};
  t.decoders = {DecodeWordPiece{}};
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    if (const auto special = vocabulary.find(name)) t.added.push_back({.id = *special, .text = name, .special = true});
  const int32_t cls = vocabulary.require("[CLS]", "the first token"),
                sep = vocabulary.require("[SEP]", "the last token");
  t.prefix_ids = {cls};
  t.suffix_ids = {sep};
  t.bos = cls;
  t.end_ids = {sep};
  return t;
}

}  // namespace hearth::text
