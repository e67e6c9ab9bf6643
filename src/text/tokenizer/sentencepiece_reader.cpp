// tokenizer.model: the ModelProto of SentencePiece (sentencepiece_model.proto).
#include <cmath>

#include "base/error.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/protobuf.h"
#include "text/tokenizer/sentencepiece_steps.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {
namespace {

struct Piece {
  std::string_view text;
  float score = 0;
  int64_t type = 1;
};

struct Spec {
  int64_t model_type = 1;  // 1 unigram, 2 bpe
  int64_t unk_id = 0, bos_id = 1, eos_id = 2;
  bool byte_fallback = false;
};

using Field = ProtobufReader::Field;

Piece read_piece(std::string_view bytes, std::string_view what) {
  Piece piece;
  ProtobufReader reader(bytes, what);
  for (Field f; reader.next(f);) {
    if (f.number == 1) piece.text = reader.bytes(f);
    else if (f.number == 2) piece.score = reader.number(f);
    else if (f.number == 3) piece.type = reader.integer(f);
  }
  return piece;
}

void read_trainer_spec(std::string_view bytes, Spec& spec, SentencePieceNormalizer& normalizer, std::string_view what) {
  ProtobufReader reader(bytes, what);
  for (Field f; reader.next(f);) switch (f.number) {
      case 3: spec.model_type = reader.integer(f); break;
      case 24: normalizer.whitespace_as_suffix = reader.flag(f); break;
      case 35: spec.byte_fallback = reader.flag(f); break;
      case 40: spec.unk_id = reader.integer(f); break;
      case 41: spec.bos_id = reader.integer(f); break;
      case 42: spec.eos_id = reader.integer(f); break;
      default: break;
    }
}

void read_normalizer_spec(std::string_view bytes, SentencePieceNormalizer& normalizer, std::string_view what) {
  ProtobufReader reader(bytes, what);
  for (Field f; reader.next(f);) switch (f.number) {
      case 2: normalizer.charsmap = reader.bytes(f); break;
      case 3: normalizer.add_dummy_prefix = reader.flag(f); break;
      case 4: normalizer.remove_extra_whitespaces = reader.flag(f); break;
      case 5: normalizer.escape_whitespaces = reader.flag(f); break;
      default: break;
    }
}

}  // namespace

TokenizerTables parse_sentencepiece_model(std::span<const std::byte> protobuf, std::string_view what) {
  TokenizerTables t;
  t.what = what;
  Spec spec;
  SentencePieceNormalizer normalizer;
  std::vector<std::string_view> pieces;
  ProtobufReader reader({reinterpret_cast<const char*>(protobuf.data()), protobuf.size()}, what);
  for (Field f; reader.next(f);) {
    if (f.number == 1) pieces.push_back(reader.bytes(f));
    else if (f.number == 2) read_trainer_spec(reader.bytes(f), spec, normalizer, what);
    else if (f.number == 3) read_normalizer_spec(reader.bytes(f), normalizer, what);
  }
  if (spec.model_type != 1 && spec.model_type != 2)
    fail(ErrorKind::invalid_argument,
         "{}: SentencePiece model type {} is not supported; supported are 1 (unigram) 2 (bpe)", what, spec.model_type);
  t.model = spec.model_type == 1 ? TokenModel::unigram : TokenModel::sentencepiece_bpe;
  VocabularyBuilder vocabulary(t, pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    const Piece piece = read_piece(pieces[id], what);
    if (!std::isfinite(piece.score))
      fail(ErrorKind::corrupt_file, "{}: piece {} has the score {}", what, id, piece.score);
    vocabulary.add(static_cast<int64_t>(id), piece.text);
    t.scores.push_back(static_cast<double>(piece.score));
    t.types.push_back(piece_type(piece.type, static_cast<int64_t>(id), what));
  }
  t.byte_fallback = spec.byte_fallback;
  t.fuse_unk = true;
  t.float_scores = true;
  add_sentencepiece_steps(t, std::move(normalizer));
  const auto named = [&](int64_t id, const char* name) -> std::optional<int32_t> {
    if (id < 0) return std::nullopt;
    if (static_cast<size_t>(id) >= t.pieces.size())
      fail(ErrorKind::corrupt_file, "{}: {} is {}, V = {}", what, name, id, t.pieces.size());
    return static_cast<int32_t>(id);
  };
  t.unk = named(spec.unk_id, "unk_id");
  t.bos = named(spec.bos_id, "bos_id");
  if (const auto eos = named(spec.eos_id, "eos_id")) t.end_ids = {*eos};
  // By custom: language models begin with the BOS, encoder-decoders (unigram) end with the eos.
  if (t.model == TokenModel::sentencepiece_bpe && t.bos) t.prefix_ids = {*t.bos};
  if (t.model == TokenModel::unigram) t.suffix_ids = t.end_ids;
  return t;
}

PieceType piece_type(int64_t number, int64_t id, std::string_view what) {
  switch (number) {
    case 1: return PieceType::normal;
    case 2: return PieceType::unknown;
    case 3: return PieceType::control;
    case 4: return PieceType::user_defined;
    case 5: return PieceType::unused;
    case 6: return PieceType::byte;
    default: fail(ErrorKind::corrupt_file, "{}: piece {} has the type {}, 1 to 6 are possible", what, id, number);
  }
}

void add_sentencepiece_steps(TokenizerTables& t, SentencePieceNormalizer normalizer) {
  for (size_t id = 0; id < t.pieces.size(); ++id) {
    const std::string& piece = t.pieces[id];
    const PieceType type = t.types[id];
    if (type == PieceType::byte) {
      const auto byte = byte_of_piece(piece);
      if (!byte || byte_piece(*byte) != piece)
        fail(ErrorKind::corrupt_file, "{}: byte piece {} is \"{}\", <0x00> to <0xFF> are possible", t.what, id,
             piece.substr(0, 100));
    } else if (type == PieceType::control || type == PieceType::unknown) {
      if (!piece.empty()) t.added.push_back({.id = static_cast<int32_t>(id), .text = piece, .special = true});
    } else if (type == PieceType::user_defined) {
      normalizer.kept.push_back(piece);
      // The unigram search prefers such pieces by itself.
      if (t.model == TokenModel::sentencepiece_bpe)
        t.added.push_back({.id = static_cast<int32_t>(id), .text = piece, .on = AddedToken::On::normalized_verbatim});
    }
  }
  if (t.byte_fallback)
    for (const int32_t id : byte_piece_ids(t))
      if (id < 0) fail(ErrorKind::corrupt_file, "{}: byte fallback without all of <0x00> to <0xFF>", t.what);
  t.decoders = {DecodeReplace{"\u2581", " "}, DecodeByteFallback{}, DecodeFuse{}};
  if (normalizer.add_dummy_prefix && !normalizer.whitespace_as_suffix) t.decoders.push_back(DecodeStrip{" ", 1, 0});
  t.normalizers.push_back(std::move(normalizer));
}

}  // namespace hearth::text
