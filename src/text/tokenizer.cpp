#include "text/tokenizer.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/model.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/piece_index.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

constexpr size_t kVocabularyMax = 16u << 20;
constexpr size_t kPieceBytesMax = 4096;
constexpr size_t kTextBytesMax = 1u << 30;  // positions in a text are 32-bit

bool has_id(const TokenizerTables& t, int64_t id) {
  return id >= 0 && static_cast<size_t>(id) < t.pieces.size() && !t.pieces[static_cast<size_t>(id)].empty();
}

// Everything that encode() relies on; the parsers check the same with better words, callers may build tables by hand.
void check(const TokenizerTables& t) {
  const size_t V = t.pieces.size();
  if (V == 0 || V > kVocabularyMax)
    fail(ErrorKind::corrupt_file, "{}: a vocabulary of {} pieces, 1 to {} are possible", t.what, V, kVocabularyMax);
  for (size_t id = 0; id < V; ++id)
    if (t.pieces[id].size() > kPieceBytesMax)
      fail(ErrorKind::corrupt_file, "{}: piece {} has {} bytes, the limit is {}", t.what, id, t.pieces[id].size(),
           kPieceBytesMax);
  const bool scored = t.model == TokenModel::sentencepiece_bpe || t.model == TokenModel::unigram;
  if (scored && t.scores.size() != V)
    fail(ErrorKind::corrupt_file, "{}: {} scores for {} pieces", t.what, t.scores.size(), V);
  for (size_t id = 0; id < t.scores.size(); ++id)
    if (!(t.scores[id] >= -1e30 && t.scores[id] <= 1e30))
      fail(ErrorKind::corrupt_file, "{}: piece {} has the score {}", t.what, id, t.scores[id]);
  if (!t.types.empty() && t.types.size() != V)
    fail(ErrorKind::corrupt_file, "{}: {} types for {} pieces", t.what, t.types.size(), V);
  for (size_t rank = 0; rank < t.merges.size(); ++rank)
    for (const int32_t id : {t.merges[rank].left, t.merges[rank].right, t.merges[rank].result})
      if (!has_id(t, id)) fail(ErrorKind::corrupt_file, "{}: merge {} names the id {}, V = {}", t.what, rank, id, V);
  const auto check_id = [&](int64_t id, const char* name) {
    if (!has_id(t, id)) fail(ErrorKind::corrupt_file, "{}: {} token has the id {}, V = {}", t.what, name, id, V);
  };
  if (t.unk) check_id(*t.unk, "the unknown");
  if (t.model == TokenModel::word_piece && !t.unk)
    fail(ErrorKind::corrupt_file, "{}: a WordPiece model without an unknown token", t.what);
  if (t.bos) check_id(*t.bos, "the BOS");
  for (const int32_t id : t.end_ids) check_id(id, "an end");
  for (const int32_t id : t.prefix_ids) check_id(id, "a leading");
  for (const int32_t id : t.suffix_ids) check_id(id, "a trailing");
  for (const AddedToken& a : t.added) {
    check_id(a.id, "an added");
    if (a.text.empty() || a.text.size() > kPieceBytesMax)
      fail(ErrorKind::corrupt_file, "{}: added token {} is spelled with {} bytes", t.what, a.id, a.text.size());
  }
}

std::vector<bool> special_ids(const TokenizerTables& t) {
  std::vector<bool> special(t.pieces.size(), false);
  for (size_t id = 0; id < t.types.size(); ++id)
    special[id] = t.types[id] == PieceType::control || t.types[id] == PieceType::unknown;
  for (const AddedToken& a : t.added)
    if (a.special) special[static_cast<size_t>(a.id)] = true;
  return special;
}

bool asks_for_start(const TokenizerTables& t) {
  return std::any_of(t.pre_tokenizers.begin(), t.pre_tokenizers.end(), [](const PreTokenizerStep& step) {
    const auto* m = std::get_if<MetaspaceSplit>(&step);
    return m && m->prepend == MetaspaceSplit::Prepend::first;
  });
}

bool splits_to_bytes(const TokenizerTables& t) {
  return t.model == TokenModel::bpe && !t.pre_tokenizers.empty() &&
         std::holds_alternative<ByteLevelSplit>(t.pre_tokenizers.back()) && t.continuing_subword_prefix.empty() &&
         t.end_of_word_suffix.empty() && !t.byte_fallback;
}

// The stretches inside `part`, counted from its beginning.
std::vector<ByteRange> part_of(std::span<const ByteRange> quoted, ByteRange part) {
  std::vector<ByteRange> out;
  auto r = std::partition_point(quoted.begin(), quoted.end(), [&](ByteRange q) { return q.end <= part.begin; });
  for (; r != quoted.end() && r->begin < part.end; ++r)
    out.push_back({std::max(r->begin, part.begin) - part.begin, std::min(r->end, part.end) - part.begin});
  return out;
}

std::unique_ptr<const WordModel> make_model(const ModelOptions& options) {
  switch (options.tables.model) {
    case TokenModel::bpe: return make_bpe(options);
    case TokenModel::sentencepiece_bpe: return make_sentencepiece_bpe(options);
    case TokenModel::unigram: return make_unigram(options);
    case TokenModel::word_piece: return make_word_piece(options);
  }
  return nullptr;
}

}  // namespace

std::string_view name_of(TokenModel model) {
  switch (model) {
    case TokenModel::bpe: return "bpe";
    case TokenModel::sentencepiece_bpe: return "sentencepiece_bpe";
    case TokenModel::unigram: return "unigram";
    case TokenModel::word_piece: return "word_piece";
  }
  return "unknown";
}

struct Tokenizer::Impl {
  explicit Impl(TokenizerTables given)
      : tables(checked(std::move(given))),
        special(special_ids(tables)),
        start_matters(asks_for_start(tables)),
        index(tables.pieces),
        normalizer(tables.normalizers, tables.what),
        pre_tokenizer(tables.pre_tokenizers, splits_to_bytes(tables), tables.what),
        model(make_model({tables, special, splits_to_bytes(tables)})),
        decoded(decode_pieces(tables.pieces, tables.decoders, tables.what)) {
    for (size_t id = 0; id < tables.pieces.size(); ++id) {
      if (tables.pieces[id].empty()) continue;
      if (const int32_t other = index.insert(static_cast<int32_t>(id)); other >= 0)
        fail(ErrorKind::corrupt_file, "{}: pieces {} and {} are both \"{}\"", tables.what, other, id,
             tables.pieces[id]);
    }
    std::vector<AddedTokens::Entry> raw, normalized;
    for (const AddedToken& a : tables.added) {
      if (a.on == AddedToken::On::raw_text) {
        raw.push_back({a.text, &a});
        continue;
      }
      std::string spelling = a.on == AddedToken::On::normalized_verbatim ? a.text : normalizer.apply(a.text);
      if (!spelling.empty()) normalized.push_back({spellings.emplace_back(std::move(spelling)), &a});
    }
    on_raw.emplace(unique(raw, "spelled"));
    on_normalized.emplace(unique(normalized, "normalized to"));
  }

  static TokenizerTables checked(TokenizerTables t) {
    check(t);
    return t;
  }

  std::vector<AddedTokens::Entry> unique(std::vector<AddedTokens::Entry> entries, const char* how) const {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.spelling < b.spelling; });
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].spelling == entries[i - 1].spelling)
        fail(ErrorKind::corrupt_file, "{}: added tokens {} and {} are both {} \"{}\"", tables.what,
             entries[i - 1].token->id, entries[i].token->id, how, entries[i].spelling);
    return entries;
  }

  // A text whose first character the normalizer removes does not begin at the start any more, for those who ask.
  bool keeps_first_character(std::string_view text) const {
    if (!start_matters || normalizer.empty() || text.empty()) return true;
    return !normalizer.apply(text.substr(0, unicode::decode(text, 0).size)).empty();
  }

  // `quoted` of the section's text.
  void encode_section(const Section& section, bool specials, std::vector<ByteRange> quoted,
                      std::vector<int32_t>& out) const {
    const std::string text = quoted.empty() ? normalizer.apply(section.text) : normalizer.apply(section.text, quoted);
    const bool at_start = section.at_start && keeps_first_character(section.text);
    std::vector<Section> parts;
    on_normalized->find(text, specials, quoted, parts);
    std::vector<Word> words;
    for (const Section& part : parts) {
      if (part.id >= 0) {
        out.push_back(part.id);
        continue;
      }
      std::deque<std::string> arena;
      words.assign(1, {part.text, at_start && part.at_start});
      pre_tokenizer.split(words, arena);
      for (const Word& word : words) model->encode(word.text, out);
    }
  }

  void check_id(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= tables.pieces.size())
      fail(ErrorKind::invalid_argument, "{}: token id {} is outside of the vocabulary, V = {}", tables.what, id,
           tables.pieces.size());
  }

  std::string_view bytes(int32_t id, bool first) const {
    return (first && !decoded.first.empty() ? decoded.first : decoded.bytes)[static_cast<size_t>(id)];
  }

  TokenizerTables tables;
  std::vector<bool> special;
  bool start_matters;
  PieceIndex index;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const WordModel> model;
  DecodedPieces decoded;
  std::deque<std::string> spellings;  // of added tokens, normalized
  std::optional<AddedTokens> on_raw, on_normalized;
};

Tokenizer::Tokenizer(TokenizerTables tables) : impl_(std::make_unique<const Impl>(std::move(tables))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::encode(std::string_view utf8, const EncodeOptions& options) const {
  if (utf8.size() > kTextBytesMax)
    fail(ErrorKind::invalid_argument, "{}: a text of {} bytes, the limit is {}", impl_->tables.what, utf8.size(),
         kTextBytesMax);
  for (size_t i = 0; i < options.quoted.size(); ++i) {
    const auto [from, to] = options.quoted[i];
    if (from > to || to > utf8.size() || (i > 0 && from < options.quoted[i - 1].end))
      fail(ErrorKind::invalid_argument, "{}: quoted stretch {} is [{}, {}) of a text of {} bytes", impl_->tables.what,
           i, from, to, utf8.size());
  }
  std::vector<int32_t> out;
  out.reserve(utf8.size() / 4 + 4);
  if (options.add_special) out = impl_->tables.prefix_ids;
  const size_t begin = out.size();
  std::vector<Section> sections;
  impl_->on_raw->find(utf8, options.parse_special, options.quoted, sections);
  const bool quotes_matter = options.parse_special && impl_->on_normalized->any_special();
  for (const Section& section : sections) {
    if (section.id >= 0) {
      out.push_back(section.id);
      continue;
    }
    const size_t at = static_cast<size_t>(section.text.data() - utf8.data());
    std::vector<ByteRange> quoted;
    if (quotes_matter) quoted = part_of(options.quoted, {at, at + section.text.size()});
    impl_->encode_section(section, options.parse_special, std::move(quoted), out);
  }
  // One BOS: a template may have written it already.
  if (options.parse_special && begin > 0 && out.size() > begin && adds_bos() && out[begin] == out[0])
    out.erase(out.begin());
  if (options.add_special) out.insert(out.end(), impl_->tables.suffix_ids.begin(), impl_->tables.suffix_ids.end());
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  bool first = true;
  for (const int32_t id : ids) {
    impl_->check_id(id);
    if (skip_special && impl_->special[static_cast<size_t>(id)]) continue;
    bytes += impl_->bytes(id, first);
    first = false;
  }
  if (impl_->decoded.drop_last_space && bytes.ends_with(' ')) bytes.pop_back();
  std::string out;
  append_repaired(out, bytes);
  return out;
}

std::string_view Tokenizer::piece_bytes(int32_t id, bool first) const {
  impl_->check_id(id);
  return impl_->bytes(id, first);
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->tables.pieces.size()); }

std::optional<int32_t> Tokenizer::id_of(std::string_view piece) const {
  const int32_t id = impl_->index.find(piece);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::piece(int32_t id) const {
  impl_->check_id(id);
  return impl_->tables.pieces[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < impl_->special.size() && impl_->special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::bos() const { return impl_->tables.bos; }
std::string_view Tokenizer::bos_text() const { return bos() ? piece(*bos()) : std::string_view(); }
std::span<const int32_t> Tokenizer::end_ids() const { return impl_->tables.end_ids; }
std::string_view Tokenizer::eos_text() const {
  return end_ids().empty() ? std::string_view() : piece(end_ids().front());
}
bool Tokenizer::adds_bos() const {
  return bos() && !impl_->tables.prefix_ids.empty() && impl_->tables.prefix_ids[0] == *bos();
}

}  // namespace hearth::text
