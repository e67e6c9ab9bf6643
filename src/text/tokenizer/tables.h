// Everything that a tokenizer needs, as plain data, whatever file it came from. The parsers check what they read and
// throw Error{corrupt_file} naming the file and the culprit; what they return is consistent (ids below V, merges and
// special tokens that name existing pieces, no piece twice).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::text {

enum class TokenModel {
  bpe,                // merges by rank (Sennrich et al. 2016), byte-level or with byte fallback
  sentencepiece_bpe,  // merges by piece score, leftmost among equals (Kudo & Richardson 2018)
  unigram,            // best path by piece scores (Kudo 2018)
  word_piece,         // longest match from the left (Schuster & Nakajima 2012; BERT)
};

std::string_view name_of(TokenModel model);  // "bpe", "sentencepiece_bpe", "unigram", "word_piece"

enum class PieceType : uint8_t { normal, unknown, control, user_defined, unused, byte };

struct Merge {
  int32_t left, right, result;  // ids; the position in the list is the rank
};

// A token that is found in the text before the model sees it: longest match first, scanning from the left.
struct AddedToken {
  int32_t id = -1;
  std::string text;
  bool special = false;      // found only with parse_special, and left out by decode(skip_special)
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // only where no word character touches it
  enum class On : uint8_t {
    raw_text,
    normalized_text,
    normalized_verbatim
  } on = On::raw_text;  // verbatim: `text` as is
};

// Text to text, applied in order.
struct UnicodeForm {
  enum class Form : uint8_t { nfc, nfd, nfkc, nfkd } form;
};
struct Lowercase {};
struct StripAccents {};
struct StripSpace {
  bool left = true, right = true;
};
struct Prepend {
  std::string text;
};
struct ReplaceAll {
  std::string pattern;  // PCRE2 when is_regex
  bool is_regex = false;
  std::string content;
};
struct BertNormalizer {
  bool clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true;
};
struct NmtNormalizer {};
struct ByteAlphabetNormalizer {};  // bytes to the printable alphabet of GPT-2
struct Charsmap {                  // SentencePiece's precompiled table, applied grapheme by grapheme
  std::string table;
};
struct SentencePieceNormalizer {
  std::string charsmap;  // empty: identity
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true,
       whitespace_as_suffix = false;
  std::vector<std::string> kept;  // user-defined pieces, never rewritten by the table
};
using NormalizerStep =
    std::variant<UnicodeForm, Lowercase, StripAccents, StripSpace, Prepend, ReplaceAll, BertNormalizer, NmtNormalizer,
                 ByteAlphabetNormalizer, Charsmap, SentencePieceNormalizer>;

// Text to words, applied in order, each to every word that the one before gave.
enum class SplitBehavior : uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };
struct ByteLevelSplit {
  bool add_prefix_space = false, use_regex = true;
};
struct PatternSplit {
  std::string pattern;
  bool is_regex = true;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
};
struct DigitsSplit {
  bool individual = false;
};
struct MetaspaceSplit {
  enum class Prepend : uint8_t { always, first, never } prepend = Prepend::always;
  std::string replacement = "\u2581";
  bool split = true;
};
struct WhitespaceSplit {
  bool words = false;  // true: \w+|[^\w\s]+
};
struct BertSplit {};
struct PunctuationSplit {
  SplitBehavior behavior = SplitBehavior::isolated;
};
using PreTokenizerStep = std::variant<ByteLevelSplit, PatternSplit, DigitsSplit, MetaspaceSplit, WhitespaceSplit,
                                      BertSplit, PunctuationSplit>;

// Piece to the bytes that it contributes, applied in order to each piece on its own.
struct DecodeByteLevel {};
struct DecodeByteFallback {};
struct DecodeFuse {};
struct DecodeReplace {
  std::string pattern, content;
};
struct DecodeStrip {
  std::string content;  // one character
  int start = 0, stop = 0;
};
struct DecodeMetaspace {
  std::string replacement = "\u2581";
  bool drop_first = true;  // the marks of the first piece vanish
};
struct DecodeWordPiece {
  std::string prefix = "##";
  bool cleanup = true;
};
struct DecodeSuffix {
  std::string suffix;  // "</w>" becomes a space
};
using DecoderStep = std::variant<DecodeByteLevel, DecodeByteFallback, DecodeFuse, DecodeReplace, DecodeStrip,
                                 DecodeMetaspace, DecodeWordPiece, DecodeSuffix>;

struct TokenizerTables {
  std::string what;  // the file, for error messages
  TokenModel model = TokenModel::bpe;
  std::vector<std::string> pieces;  // [V]; an empty string is an id without a piece
  std::vector<double> scores;       // [V] for sentencepiece_bpe and unigram, else empty
  std::vector<PieceType> types;     // [V], or empty: all normal
  std::vector<Merge> merges;        // bpe
  std::optional<int32_t> unk;
  bool ignore_merges = false;  // a word that is a piece is that piece, whatever the merges say
  bool byte_fallback = false;  // unknown characters become pieces <0xNN>
  bool fuse_unk = false;       // neighbouring unknowns become one
  bool float_scores = false;   // unigram: sums in fp32 as in SentencePiece, else fp64
  std::string continuing_subword_prefix, end_of_word_suffix;
  int64_t max_input_chars_per_word = 100;  // word_piece

  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizers;
  std::vector<PreTokenizerStep> pre_tokenizers;
  std::vector<DecoderStep> decoders;
  std::vector<int32_t> prefix_ids, suffix_ids;  // what add_special puts around the text

  std::optional<int32_t> bos;
  std::vector<int32_t> end_ids;  // eos, eot, eom; no id twice
};

// tokenizer.json of the tokenizers library: models BPE, Unigram, WordPiece.
TokenizerTables parse_tokenizer_json(std::string_view json, std::string_view what);

// tokenizer.model: the SentencePiece ModelProto, types BPE and Unigram.
TokenizerTables parse_sentencepiece_model(std::span<const std::byte> protobuf, std::string_view what);

// The tokenizer.ggml.* metadata of a GGUF file, copied by the caller.
struct GgufTokenizer {
  std::string model;  // "gpt2", "gemma4", "llama", "bert", "t5"
  std::string pre;    // name of the pre-tokenizer; read for "gpt2" alone
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;   // empty, or one per token
  std::vector<int64_t> types;  // empty, or one per token: 1 normal 2 unknown 3 control 4 user-defined 5 unused 6 byte
  std::optional<int64_t> bos, eos, eot, eom, unk, pad, sep, cls;
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, remove_extra_whitespaces;
  std::string precompiled_charsmap;
};
TokenizerTables tables_from_gguf(const GgufTokenizer& gguf, std::string_view what);

// vocab.json and merges.txt of GPT-2; its special tokens come with apply_config_files().
TokenizerTables tables_from_vocab_merges(std::string_view vocab_json, std::string_view merges_txt,
                                         std::string_view what);

// vocab.txt of BERT, one piece a line. Lower case, as most are; apply_config_files() may say otherwise.
TokenizerTables tables_from_vocab_txt(std::string_view vocab_txt, std::string_view what);

// The JSON files that may lie beside a tokenizer's own file.
struct TokenizerConfigFiles {
  struct File {
    std::string text, name;  // name: for errors
  };
  std::optional<File> tokenizer_config, special_tokens_map, added_tokens;
};

// Adds what they say, as the transformers library reads them: bos and eos; added tokens, of added_tokens_decoder in
// tokenizer_config.json or else of added_tokens.json; which tokens are special (bos, eos, unk, sep, pad, cls, mask and
// additional ones; special_tokens_map.json is asked only where there is no added_tokens_decoder); add_bos_token and
// add_eos_token; do_lower_case, strip_accents and tokenize_chinese_chars of a BERT tokenizer. What the tokenizer's own
// file says of a token stays. A special token that no piece spells is passed over: the model has no row for it.
// Throws Error{corrupt_file} with file and member.
void apply_config_files(TokenizerTables& tables, const TokenizerConfigFiles& files);

}  // namespace hearth::text
