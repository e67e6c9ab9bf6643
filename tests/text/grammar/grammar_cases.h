// A small vocabulary for grammar tests, and texts held against grammars.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/grammar/expr.h"
#include "text/grammar/grammar.h"
#include "text/grammar/matcher.h"
#include "text/tokenizer_tables.h"

namespace hearth::text {

// <unk> <s> </s>, all bytes from id 3 on, then these pieces.
inline Tokenizer grammar_tokenizer(const std::vector<std::string>& pieces) {
  std::vector<std::pair<std::string, float>> scored;
  for (const std::string& piece : pieces) {
    std::string marked;
    for (const char c : piece) marked += c == ' ' ? std::string("\u2581") : std::string(1, c);
    scored.push_back({marked, 0.0f});
  }
  return Tokenizer(tables_from_gguf(sentencepiece_gguf(scored), "test"));
}

inline std::shared_ptr<const VocabularyIndex> vocabulary_of(const std::vector<std::string>& pieces) {
  const Tokenizer tokenizer = grammar_tokenizer(pieces);
  return std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());
}

inline const std::shared_ptr<const VocabularyIndex>& json_vocabulary() {
  static const auto vocabulary = vocabulary_of({"\"",
                                                "\",",
                                                "\", \"",
                                                "\":",
                                                "\": ",
                                                "\": \"",
                                                "{\"",
                                                "\"}",
                                                "}}",
                                                "\"}]",
                                                "[\"",
                                                "],",
                                                "]}",
                                                " \"",
                                                "abc",
                                                "ab",
                                                "a\"",
                                                "true",
                                                "false",
                                                "null",
                                                "name",
                                                "id",
                                                "12",
                                                "1,",
                                                "12}",
                                                ".5",
                                                "-1",
                                                "e+",
                                                "\\\"",
                                                "\\n",
                                                "\\u",
                                                "\\u00",
                                                "\u00e9",
                                                "caf\u00e9",
                                                "\n",
                                                "  ",
                                                "      ",
                                                "x y z",
                                                "hello",
                                                "hello\"",
                                                "aaaaaaaaaaaaaaaa",
                                                "0000",
                                                "9999",
                                                "{}",
                                                "[]",
                                                ", ",
                                                ": ",
                                                "1}",
                                                "\"\"",
                                                "\"a\":",
                                                "b\",\"",
                                                "root",
                                                "(((",
                                                ")))"});
  return vocabulary;
}

inline GrammarPtr schema_grammar(std::string_view text, const JsonOptions& options = {}) {
  return compile_json_schema(json::parse(text, "schema"), options);
}

// The whole text, byte by byte.
inline bool accepts(const GrammarPtr& grammar, std::string_view text) {
  GrammarMatcher m(grammar, json_vocabulary());
  return m.accept_bytes(text) && m.accepting();
}
inline bool begins(const GrammarPtr& grammar, std::string_view text) {
  return GrammarMatcher(grammar, json_vocabulary()).accept_bytes(text);
}

template <class Make>
void expect_refused(std::string_view part, const Make& make) {
  expect_error(ErrorKind::invalid_argument, part, make);
}

}  // namespace hearth::text
