// Small vocabularies made by hand for the tokenizer tests.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer/byte_alphabet.h"

namespace hearth::text {

using Ids = std::vector<int32_t>;

// All 256 bytes as pieces 0 to 255, then `joined` ("ab", "Ġthe") whose merges split them at every place that both
// sides exist, then specials "<s>", "</s>".
inline std::string byte_level_json(const std::vector<std::pair<std::string, std::string>>& merges,
                                   std::string_view model_fields = "", std::string_view pre_tokenizer = "") {
  std::string vocab, list;
  const auto quoted = [](std::string_view s) {
    std::string out = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  };
  int id = 0;
  for (int b = 0; b < 256; ++b)
    vocab += fmt::format("{}: {}, ", quoted(to_alphabet(std::string(1, static_cast<char>(b)))), id++);
  for (const auto& [left, right] : merges) {
    if (left + right != "<s>" && left + right != "</s>") vocab += fmt::format("{}: {}, ", quoted(left + right), id++);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", quoted(left + " " + right));
  }
  vocab += fmt::format("\"<s>\": {}, \"</s>\": {}", id, id + 1);
  const std::string pre = pre_tokenizer.empty()
                              ? R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})"
                              : std::string(pre_tokenizer);
  return fmt::format(
      R"({{"added_tokens": [{{"id": {}, "content": "<s>", "special": true}}, {{"id": {}, "content": "</s>", "special": true}}],
          "pre_tokenizer": {}, "decoder": {{"type": "ByteLevel"}},
          "post_processor": {{"type": "TemplateProcessing",
            "single": [{{"SpecialToken": {{"id": "<s>", "type_id": 0}}}}, {{"Sequence": {{"id": "A", "type_id": 0}}}}],
            "special_tokens": {{"<s>": {{"id": "<s>", "ids": [{}], "tokens": ["<s>"]}}}}}},
          "model": {{"type": "BPE", {} "vocab": {{{}}}, "merges": [{}]}}}})",
      id, id + 1, pre, id, model_fields, vocab, list);
}

// A SentencePiece BPE vocabulary as GGUF metadata: <unk> <s> </s>, the bytes, then (piece, score).
inline GgufTokenizer sentencepiece_gguf(const std::vector<std::pair<std::string, float>>& pieces) {
  GgufTokenizer g;
  g.model = "llama";
  const auto add = [&](std::string token, float score, int32_t type) {
    g.tokens.push_back(std::move(token));
    g.scores.push_back(score);
    g.types.push_back(type);
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("</s>", 0, 3);
  for (int b = 0; b < 256; ++b) add(byte_piece(static_cast<uint8_t>(b)), 0, 6);
  for (const auto& [piece, score] : pieces) add(piece, score, 1);
  g.unk = 0;
  g.bos = 1;
  g.eos = 2;
  return g;
}
constexpr int32_t kFirstPiece = 259;  // of sentencepiece_gguf

template <class F>
void expect_error(ErrorKind kind, std::string_view part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error, expected one with \"" << part << '"';
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
  }
}

}  // namespace hearth::text
