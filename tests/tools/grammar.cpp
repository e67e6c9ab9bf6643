// tool_grammar: grammars behind a command line, for the oracle test in Python. Reads one JSON object a line:
//   kind        schema | object | regex | ebnf | choice
//   grammar     the schema, a string, or a list of strings
//   whitespace  true: JsonOptions::any_whitespace
//   texts       [string]: answered by "accepts" [bool], and "prefixes" [bool]: whether some text begins so
//   walks       number of random texts wanted, answered by "walks" [string]; seed: of the random numbers. On the way
//               every mask is held against accept() of every id.
//   allowed     string: answered by "allowed" [byte], what may follow this text; null when nothing begins so
// and writes one a line: {"error": sentence} or the answers. The vocabulary is the 256 bytes and some pairs of them.
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/grammar/grammar.h"
#include "text/grammar/matcher.h"
#include "text/tokenizer.h"

namespace {

using namespace hearth;
using namespace hearth::text;

Tokenizer byte_tokenizer() {
  GgufTokenizer g;
  g.model = "llama";
  const auto add = [&](std::string piece, int32_t type) {
    g.tokens.push_back(std::move(piece));
    g.scores.push_back(0);
    g.types.push_back(type);
  };
  add("<unk>", 2);
  add("<s>", 3);
  add("</s>", 3);
  for (int b = 0; b < 256; ++b) add(fmt::format("<0x{:02X}>", b), 6);
  for (const char* pair : {"\",", "\":", "{\"", "\"}", "ab", "12", "true", "[]", "],", "}}", "\\\"", "abc", "\xC3\xA9"})
    add(pair, 1);
  g.unk = 0;
  g.bos = 1;
  g.eos = 2;
  return Tokenizer(tables_from_gguf(g, "bytes"));
}

GrammarPtr compile(const json::Value& request) {
  const std::string kind = request.get("kind")->as_string("kind");
  const json::Value* whitespace = request.get("whitespace");
  const JsonOptions options{.any_whitespace = whitespace && whitespace->as_bool("whitespace")};
  if (kind == "object") return compile_json_object(options);
  const json::Value& grammar = *request.get("grammar");
  if (kind == "schema") return compile_json_schema(grammar, options);
  if (kind == "regex") return compile_regex(grammar.as_string("grammar"));
  if (kind == "ebnf") return compile_ebnf(grammar.as_string("grammar"));
  if (kind != "choice") fail(ErrorKind::invalid_argument, "unknown kind {}", kind);
  std::vector<std::string> texts;
  for (const json::Value& text : grammar.as_array("grammar")) texts.push_back(text.as_string("grammar"));
  return compile_choice(texts);
}

// A text by random allowed ids; ends with the first chance once it is long.
std::optional<std::string> walk(GrammarMatcher matcher, std::mt19937_64& rng) {
  std::string out;
  std::vector<uint64_t> bits(matcher.vocabulary().words());
  for (int step = 0; step < 4000; ++step) {
    if (matcher.accepting() && (matcher.finished() || step > 60 || rng() % 4 == 0)) return out;
    matcher.mask(bits);
    std::vector<int32_t> ids, closing;
    for (int32_t id = 0; id < matcher.vocabulary().vocab_size(); ++id) {
      const bool allowed = bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1;
      GrammarMatcher trial = matcher;
      if (trial.accept(id) != allowed)
        fail(ErrorKind::invalid_argument, "id {} after {}: in the mask {}, accepted {}", id, out, allowed, !allowed);
      if (allowed && !matcher.vocabulary().is_end(id)) {
        ids.push_back(id);
        if (std::string_view("\"}],0").find(matcher.vocabulary().bytes(id)[0]) != std::string_view::npos)
          closing.push_back(id);
      }
    }
    if (ids.empty()) fail(ErrorKind::invalid_argument, "no id is allowed after {}", out);
    const std::vector<int32_t>& from = !closing.empty() && rng() % 100 < static_cast<unsigned>(step) ? closing : ids;
    const int32_t id = from[rng() % from.size()];
    if (!matcher.accept(id)) fail(ErrorKind::invalid_argument, "an allowed id is not accepted after {}", out);
    out += matcher.vocabulary().bytes(id);
  }
  return std::nullopt;
}

json::Value answer(const json::Value& request, const std::shared_ptr<const VocabularyIndex>& vocabulary) {
  json::Object out;
  try {
    const GrammarMatcher start(compile(request), vocabulary);
    if (const json::Value* texts = request.get("texts")) {
      json::Array accepts, prefixes;
      for (const json::Value& text : texts->as_array("texts")) {
        GrammarMatcher m = start;
        const bool prefix = m.accept_bytes(text.as_string("texts"));
        accepts.push_back(prefix && m.accepting());
        prefixes.push_back(prefix);
      }
      out["accepts"] = std::move(accepts);
      out["prefixes"] = std::move(prefixes);
    }
    if (const json::Value* walks = request.get("walks")) {
      std::mt19937_64 rng(static_cast<uint64_t>(request.get("seed")->as_int("seed")));
      json::Array texts;
      for (int64_t i = walks->as_int("walks"); i > 0; --i)
        if (auto text = walk(start, rng)) texts.push_back(std::move(*text));
      out["walks"] = std::move(texts);
    }
    if (const json::Value* text = request.get("allowed")) {
      GrammarMatcher m = start;
      json::Array bytes;
      if (m.accept_bytes(text->as_string("allowed"))) {
        for (int b = 0; b < 256; ++b) {
          GrammarMatcher next = m;
          const char c = static_cast<char>(b);
          if (next.accept_bytes(std::string_view(&c, 1))) bytes.push_back(b);
        }
        out["allowed"] = std::move(bytes);
      } else {
        out["allowed"] = nullptr;
      }
    }
  } catch (const Error& e) {
    out = {};
    out["error"] = e.what();
  }
  return out;
}

}  // namespace

int main() {
  try {
    const Tokenizer tokenizer = byte_tokenizer();
    const auto vocabulary = std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());
    for (std::string line; std::getline(std::cin, line);)
      std::cout << json::dump(answer(json::parse(line, "request"), vocabulary)) << '\n';
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return exit_code(e.kind());
  }
}
