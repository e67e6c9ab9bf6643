// The tokenizer.ggml.* metadata of GGUF files.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "text/tokenizer/matcher.h"
#include "text/tokenizer/sentencepiece_steps.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {
namespace {

using Steps = std::vector<PreTokenizerStep>;

// The patterns of a family one after the other, then the byte alphabet.
Steps byte_level(std::initializer_list<std::string> split_by) {
  Steps steps;
  for (const std::string& pattern : split_by) steps.emplace_back(PatternSplit{.pattern = pattern});
  steps.emplace_back(ByteLevelSplit{.add_prefix_space = false, .use_regex = false});
  return steps;
}

struct Family {
  Steps steps;
  bool ignore_merges = false;
  bool add_bos = false;
  bool nfc = false;  // the models' own tokenizers compose the text first
};

// Names of tokenizer.ggml.pre as converters write them.
Family family_of(const std::string& pre, std::string_view what) {
  namespace p = patterns;
  const auto any_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), pre) != names.end();
  };
  if (any_of({"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum",
              "modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "roberta-bpe",
              "jina-v1-en", "jina-v2-code"}))
    return {byte_level({p::kGpt2})};
  if (any_of({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}))
    return {byte_level({p::kNumber, p::kGpt2})};
  if (any_of(
          {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"}))
    return {byte_level({p::kLlama3}), true, true};
  if (any_of({"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"})) return {byte_level({p::kLlama3})};
  if (any_of({"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"}))
    return {.steps = byte_level({p::kQwen2}), .nfc = true};
  if (any_of({"stablelm2", "hunyuan", "solar-open", "grok-2"})) return {byte_level({p::kQwen2})};
  if (pre == "qwen35") return {.steps = byte_level({p::kQwen35}), .nfc = true};
  if (pre == "ufakzeka") return {byte_level({p::kNoContractions})};
  if (pre == "minicpm5") return {byte_level({p::kThreeNumbers, p::kMinicpm5}), true};
  if (pre == "tekken") return {byte_level({p::kTekken}), true, true};
  if (any_of({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"})) return {byte_level({p::kO200k})};
  if (any_of({"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}))
    return {byte_level({p::kThreeNumbers, p::kCjkRuns, p::kDeepseek3})};
  if (pre == "falcon") return {byte_level({p::kFalconPunctuation, p::kGpt2, p::kThreeDigits})};
  if (pre.empty() || pre == "default")
    return {byte_level({R"([\p{P}\$\+<=>\^~\|]+)", p::kGpt2, p::kNumbers, p::kThreeDigits})};
  fail(ErrorKind::invalid_argument,
       "{}: pre-tokenizer \"{}\" is not supported; supported are default gpt-2 smollm starcoder llama-bpe qwen2 qwen35 "
       "minicpm5 tekken gpt-4o deepseek-v3 falcon glm4 and their relatives",
       what, pre.substr(0, 100));
}

// Spellings that mark the end of a turn where the file does not name the token.
constexpr std::array<std::string_view, 9> kEndOfTurn = {"<|eot_id|>",    "<|im_end|>",    "<|end|>",
                                                        "<end_of_turn>", "<|endoftext|>", "<EOT>",
                                                        "_<EOT>",        "[EOT]",         "<end_of_utterance>"};
// And its beginning, with the end of a role's name.
constexpr std::array<std::string_view, 4> kStartOfTurn = {"<|im_start|>", "<|start_header_id|>", "<|end_header_id|>",
                                                          "<start_of_turn>"};

class GgufReader {
 public:
  GgufReader(const GgufTokenizer& g, std::string_view what) : g_(g), vocabulary_(t_, g.tokens.size()) {
    t_.what = what;
    check_sizes();
  }

  TokenizerTables read() {
    if (g_.model == "gpt2") read_byte_level();
    else if (g_.model == "gemma4") read_newline_split();
    else if (g_.model == "llama") read_sentencepiece(TokenModel::sentencepiece_bpe);
    else if (g_.model == "t5") read_sentencepiece(TokenModel::unigram);
    else if (g_.model == "bert") read_bert();
    else
      fail(ErrorKind::invalid_argument,
           "{}: tokenizer model \"{}\" is not supported; supported are gpt2 gemma4 llama t5 bert", t_.what,
           g_.model.substr(0, 100));
    name_end_tokens();
    return std::move(t_);
  }

 private:
  void check_sizes() const {
    const size_t V = g_.tokens.size();
    if (V == 0) fail(ErrorKind::corrupt_file, "{}: tokenizer.ggml.tokens is empty", t_.what);
    if (!g_.scores.empty() && g_.scores.size() != V)
      fail(ErrorKind::corrupt_file, "{}: tokenizer.ggml.scores has {} members for {} tokens", t_.what, g_.scores.size(),
           V);
    if (!g_.types.empty() && g_.types.size() != V)
      fail(ErrorKind::corrupt_file, "{}: tokenizer.ggml.token_type has {} members for {} tokens", t_.what,
           g_.types.size(), V);
  }

  std::optional<int32_t> id_of(const std::optional<int64_t>& id, const char* name) const {
    if (!id) return std::nullopt;
    if (*id < 0 || static_cast<size_t>(*id) >= g_.tokens.size() || g_.tokens[static_cast<size_t>(*id)].empty())
      fail(ErrorKind::corrupt_file, "{}: tokenizer.ggml.{} is {}, V = {}", t_.what, name, *id, g_.tokens.size());
    return static_cast<int32_t>(*id);
  }

  // Converters of old wrote the marks of turns as user-defined tokens, which are found in any text, and now and then an
  // end token as a normal one. They are control tokens: a message must not be able to end its turn.
  PieceType type_of(size_t id) const {
    if (g_.types.empty()) return is_end(id) ? PieceType::control : PieceType::normal;
    const PieceType type = piece_type(g_.types[id], static_cast<int64_t>(id), t_.what);
    const auto spelled = [&](const auto& list) {
      return std::find(list.begin(), list.end(), g_.tokens[id]) != list.end();
    };
    if (type == PieceType::user_defined && (spelled(kEndOfTurn) || spelled(kStartOfTurn))) return PieceType::control;
    return is_end(id) && (type == PieceType::user_defined || type == PieceType::normal) ? PieceType::control : type;
  }
  bool is_end(size_t id) const {
    const auto at = static_cast<int64_t>(id);
    return g_.eos == at || g_.eot == at || g_.eom == at;
  }

  // `spell` turns the file's spelling into the piece's.
  template <class Spell>
  void read_pieces(Spell&& spell) {
    t_.pieces.resize(g_.tokens.size());
    t_.types.reserve(g_.tokens.size());
    for (size_t id = 0; id < g_.tokens.size(); ++id) {
      t_.types.push_back(type_of(id));
      if (!g_.tokens[id].empty()) vocabulary_.add(static_cast<int64_t>(id), spell(g_.tokens[id], t_.types.back()));
    }
    t_.unk = id_of(g_.unk, "unknown_token_id");
    t_.bos = id_of(g_.bos, "bos_token_id");
  }

  void read_scores() {
    if (g_.scores.empty()) fail(ErrorKind::corrupt_file, "{}: a {} tokenizer without scores", t_.what, g_.model);
    for (size_t id = 0; id < g_.scores.size(); ++id) {
      if (!std::isfinite(g_.scores[id]))
        fail(ErrorKind::corrupt_file, "{}: token {} has the score {}", t_.what, id, g_.scores[id]);
      t_.scores.push_back(static_cast<double>(g_.scores[id]));
    }
  }

  // Control and unknown tokens are special, user-defined ones are found in any text. All are spelled as in the text.
  void add_marked_tokens() {
    for (size_t id = 0; id < t_.pieces.size(); ++id) {
      if (t_.pieces[id].empty()) continue;
      const bool special = t_.types[id] == PieceType::control || t_.types[id] == PieceType::unknown;
      if (special || t_.types[id] == PieceType::user_defined)
        t_.added.push_back({.id = static_cast<int32_t>(id), .text = t_.pieces[id], .special = special});
    }
  }

  void add_around(bool bos, bool eos) {
    const auto eos_id = id_of(g_.eos, "eos_token_id");
    if (g_.add_bos.value_or(bos) && t_.bos) t_.prefix_ids = {*t_.bos};
    if (g_.add_eos.value_or(eos) && eos_id) t_.suffix_ids = {*eos_id};
  }

  void read_byte_level() {
    Family family = family_of(g_.pre, t_.what);
    t_.model = TokenModel::bpe;
    t_.ignore_merges = family.ignore_merges;
    read_pieces([](const std::string& s, PieceType) { return std::string_view(s); });
    t_.unk.reset();  // bytes without a piece vanish, as with the models' own tokenizers
    t_.merges.reserve(g_.merges.size());
    for (const std::string& merge : g_.merges) vocabulary_.add_merge(merge);
    if (family.nfc) t_.normalizers.emplace_back(UnicodeForm{UnicodeForm::Form::nfc});
    t_.pre_tokenizers = std::move(family.steps);
    t_.decoders = {DecodeByteLevel{}};
    add_marked_tokens();
    add_around(family.add_bos, false);
  }

  // Gemma 4: merges on characters, spaces written U+2581, words end at newlines only.
  void read_newline_split() {
    t_.model = TokenModel::bpe;
    t_.byte_fallback = t_.fuse_unk = true;
    read_pieces([](const std::string& s, PieceType) { return std::string_view(s); });
    t_.merges.reserve(g_.merges.size());
    for (const std::string& merge : g_.merges) vocabulary_.add_merge(merge);
    t_.normalizers.emplace_back(ReplaceAll{.pattern = " ", .content = "\u2581"});
    t_.pre_tokenizers.emplace_back(PatternSplit{.pattern = patterns::kNewlines});
    t_.decoders = {DecodeReplace{"\u2581", " "}, DecodeByteFallback{}, DecodeFuse{}};
    add_marked_tokens();
    add_around(true, false);
  }

  void read_sentencepiece(TokenModel model) {
    t_.model = model;
    t_.float_scores = t_.fuse_unk = true;
    // Converters spell the spaces of user-defined pieces as spaces; SentencePiece finds such pieces behind its
    // normalizer.
    read_pieces([](const std::string& piece, PieceType type) {
      if (type != PieceType::user_defined) return piece;
      std::string out;
      for (const char c : piece)
        if (c == ' ') out += "\u2581";
        else out += c;
      return out;
    });
    read_scores();
    t_.byte_fallback = std::find(t_.types.begin(), t_.types.end(), PieceType::byte) != t_.types.end();
    SentencePieceNormalizer normalizer{.charsmap = g_.precompiled_charsmap};
    normalizer.add_dummy_prefix = g_.add_space_prefix.value_or(true);
    normalizer.remove_extra_whitespaces = g_.remove_extra_whitespaces.value_or(false);
    add_sentencepiece_steps(t_, std::move(normalizer));
    const bool decoder_only = model == TokenModel::sentencepiece_bpe;
    add_around(decoder_only, !decoder_only);
  }

  // Converters spell word starts with U+2581 in front and continuations without "##".
  void read_bert() {
    t_.model = TokenModel::word_piece;
    t_.continuing_subword_prefix = "##";
    read_pieces([](const std::string& s, PieceType type) {
      if (type == PieceType::control || type == PieceType::unknown || type == PieceType::user_defined) return s;
      if (s.starts_with("\u2581") && s.size() > 3) return s.substr(3);
      return "##" + s;
    });
    if (!t_.unk) fail(ErrorKind::corrupt_file, "{}: a bert tokenizer without tokenizer.ggml.unknown_token_id", t_.what);
    t_.normalizers.emplace_back(BertNormalizer{});
    t_.pre_tokenizers.emplace_back(BertSplit{});
    t_.decoders = {DecodeWordPiece{}};
    add_marked_tokens();
    const auto cls = id_of(g_.cls ? g_.cls : g_.bos, "cls_token_id"), sep = id_of(g_.sep, "seperator_token_id");
    t_.bos = cls;
    if (g_.add_bos.value_or(true) && cls) t_.prefix_ids = {*cls};
    if (g_.add_sep.value_or(true) && sep) t_.suffix_ids = {*sep};
  }

  void name_end_tokens() {
    for (const auto& [id, name] :
         {std::pair(&g_.eos, "eos_token_id"), std::pair(&g_.eot, "eot_token_id"), std::pair(&g_.eom, "eom_token_id")})
      if (const auto end = id_of(*id, name)) add_end_id(t_, *end);
    const auto add_if_control = [&](std::string_view spelling) {
      const auto id = vocabulary_.find(spelling);
      if (!id || t_.types[static_cast<size_t>(*id)] != PieceType::control) return false;
      add_end_id(t_, *id);
      return true;
    };
    if (!g_.eot)
      for (const std::string_view spelling : kEndOfTurn)
        if (add_if_control(spelling)) break;
    if (!g_.eom) add_if_control("<|eom_id|>");
  }

  const GgufTokenizer& g_;
  TokenizerTables t_;
  VocabularyBuilder vocabulary_;
};

}  // namespace

TokenizerTables tables_from_gguf(const GgufTokenizer& gguf, std::string_view what) {
  return GgufReader(gguf, what).read();
}

}  // namespace hearth::text
