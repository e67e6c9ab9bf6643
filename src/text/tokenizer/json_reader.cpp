// tokenizer.json.
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/json_steps.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {
namespace {

const json::Value& require(const json::Value& parent, std::string_view key, const std::string& what) {
  const json::Value* v = parent.get(key);
  if (!v) fail(ErrorKind::corrupt_file, "{}: no \"{}\"", what, key);
  return *v;
}

bool flag(const json::Value& parent, std::string_view key, bool otherwise, const std::string& what) {
  const json::Value* v = parent.get(key);
  return v ? v->as_bool(what + ": " + std::string(key)) : otherwise;
}

std::string text_or_empty(const json::Value& parent, std::string_view key, const std::string& what) {
  const json::Value* v = parent.get(key);
  return v ? v->as_string(what + ": " + std::string(key)) : std::string();
}

void read_bpe(const json::Value& model, TokenizerTables& t, VocabularyBuilder& vocabulary) {
  t.model = TokenModel::bpe;
  t.ignore_merges = flag(model, "ignore_merges", false, t.what);
  t.byte_fallback = flag(model, "byte_fallback", false, t.what);
  t.fuse_unk = flag(model, "fuse_unk", false, t.what);
  t.continuing_subword_prefix = text_or_empty(model, "continuing_subword_prefix", t.what);
  t.end_of_word_suffix = text_or_empty(model, "end_of_word_suffix", t.what);
  if (const json::Value* dropout = model.get("dropout"); dropout && dropout->as_double(t.what + ": dropout") != 0)
    fail(ErrorKind::invalid_argument, "{}: dropout {} is for training and not supported", t.what,
         dropout->as_double(t.what));
  for (const json::Member& m : require(model, "vocab", t.what).as_object(t.what + ": vocab"))
    vocabulary.add(m.second.as_int(t.what + ": vocab"), m.first);
  if (const std::string unk = text_or_empty(model, "unk_token", t.what); !unk.empty())
    t.unk = vocabulary.require(unk, "the unknown token");
  const json::Array& merges = require(model, "merges", t.what).as_array(t.what + ": merges");
  t.merges.reserve(merges.size());
  for (const json::Value& merge : merges) {
    if (const std::string* pair = merge.string()) {
      vocabulary.add_merge(*pair);
      continue;
    }
    const json::Array& parts = merge.as_array(t.what + ": merges");
    if (parts.size() != 2)
      fail(ErrorKind::corrupt_file, "{}: merge {} has {} parts", t.what, t.merges.size(), parts.size());
    vocabulary.add_merge(parts[0].as_string(t.what + ": merges"), parts[1].as_string(t.what + ": merges"));
  }
}

void read_unigram(const json::Value& model, TokenizerTables& t, VocabularyBuilder& vocabulary) {
  t.model = TokenModel::unigram;
  t.byte_fallback = flag(model, "byte_fallback", false, t.what);
  t.fuse_unk = true;
  for (const json::Value& entry : require(model, "vocab", t.what).as_array(t.what + ": vocab")) {
    const json::Array& pair = entry.as_array(t.what + ": vocab");
    if (pair.size() != 2)
      fail(ErrorKind::corrupt_file, "{}: vocab entry {} has {} members", t.what, t.scores.size(), pair.size());
    vocabulary.add(static_cast<int64_t>(t.scores.size()), pair[0].as_string(t.what + ": vocab"));
    t.scores.push_back(pair[1].as_double(t.what + ": vocab"));
  }
  if (const json::Value* unk = model.get("unk_id")) {
    const int64_t id = unk->as_int(t.what + ": unk_id");
    if (id < 0 || static_cast<size_t>(id) >= t.pieces.size())
      fail(ErrorKind::corrupt_file, "{}: unk_id is {}, V = {}", t.what, id, t.pieces.size());
    t.unk = static_cast<int32_t>(id);
  }
}

void read_word_piece(const json::Value& model, TokenizerTables& t, VocabularyBuilder& vocabulary) {
  t.model = TokenModel::word_piece;
  t.continuing_subword_prefix = text_or_empty(model, "continuing_subword_prefix", t.what);
  if (const json::Value* n = model.get("max_input_chars_per_word"))
    t.max_input_chars_per_word = n->as_int(t.what + ": max_input_chars_per_word");
  for (const json::Member& m : require(model, "vocab", t.what).as_object(t.what + ": vocab"))
    vocabulary.add(m.second.as_int(t.what + ": vocab"), m.first);
  t.unk =
      vocabulary.require(require(model, "unk_token", t.what).as_string(t.what + ": unk_token"), "the unknown token");
}

// Files from before 2021 do not say which model they hold.
std::string model_type(const json::Value& model, const std::string& what) {
  if (const json::Value* type = model.get("type")) return type->as_string(what + ": model.type");
  if (model.get("merges")) return "BPE";
  return model.get("max_input_chars_per_word") ? "WordPiece" : "Unigram";
}

}  // namespace

AddedToken read_added(const json::Value& value, const std::string& what) {
  AddedToken token;
  token.text = require(value, "content", what).as_string(what + ": content");
  token.special = flag(value, "special", false, what);
  token.lstrip = flag(value, "lstrip", false, what);
  token.rstrip = flag(value, "rstrip", false, what);
  token.single_word = flag(value, "single_word", false, what);
  token.on =
      flag(value, "normalized", !token.special, what) ? AddedToken::On::normalized_text : AddedToken::On::raw_text;
  return token;
}

int32_t id_in_range(int64_t id, const std::string& what) {
  if (id < 0 || id > INT32_MAX) fail(ErrorKind::corrupt_file, "{}: the id {}", what, id);
  return static_cast<int32_t>(id);
}

TokenizerTables parse_tokenizer_json(std::string_view text, std::string_view what) {
  const json::Value root = json::parse(text, what);
  TokenizerTables t;
  t.what = what;
  root.as_object(what);
  const json::Value& model = require(root, "model", t.what);
  const json::Value& vocab = require(model, "vocab", t.what);
  const json::Value* added = root.get("added_tokens");
  const size_t expected = (vocab.object()  ? vocab.object()->size()
                           : vocab.array() ? vocab.array()->size()
                                           : 0) +
                          (added && added->array() ? added->array()->size() : 0);
  VocabularyBuilder vocabulary(t, expected);
  const std::string type = model_type(model, t.what);
  if (type == "BPE") read_bpe(model, t, vocabulary);
  else if (type == "Unigram") read_unigram(model, t, vocabulary);
  else if (type == "WordPiece") read_word_piece(model, t, vocabulary);
  else
    fail(ErrorKind::invalid_argument, "{}: model of type \"{}\" is not supported; supported are BPE Unigram WordPiece",
         what, type.substr(0, 100));

  if (added) {
    std::unordered_set<int32_t> seen;
    for (const json::Value& value : added->as_array(t.what + ": added_tokens")) {
      AddedToken token = read_added(value, t.what + ": added_tokens");
      token.id = id_in_range(require(value, "id", t.what + ": added_tokens").as_int(t.what), t.what + ": added_tokens");
      const bool known =
          static_cast<size_t>(token.id) < t.pieces.size() && t.pieces[static_cast<size_t>(token.id)] == token.text;
      if (!known) vocabulary.add(token.id, token.text);
      if (!seen.insert(token.id).second) fail(ErrorKind::corrupt_file, "{}: token {} is added twice", what, token.id);
      t.added.push_back(std::move(token));
    }
  }
  if (t.model == TokenModel::unigram && t.scores.size() < t.pieces.size()) {
    // Tokens beside the model's own vocabulary take no part in its segmentation.
    t.types.assign(t.scores.size(), PieceType::normal);
    t.types.resize(t.pieces.size(), PieceType::unused);
    t.scores.resize(t.pieces.size(), 0.0);
  }
  if (const json::Value* v = root.get("normalizer")) read_normalizer(*v, t);
  if (const json::Value* v = root.get("pre_tokenizer")) read_pre_tokenizer(*v, t);
  if (const json::Value* v = root.get("post_processor")) read_post_processor(*v, vocabulary, t);
  if (const json::Value* v = root.get("decoder")) read_decoder(*v, t);
  else t.decoders.push_back(DecodeWordPiece{"", false});  // the library then joins pieces with spaces
  return t;
}

}  // namespace hearth::text
