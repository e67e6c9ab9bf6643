// Times of grammars with a real vocabulary: bench_grammar MODEL.gguf [--rounds N]
// For each case: compiling, then mask() and accept() of every token along a text (its own tokens, N times, each with a
// new matcher) and along random allowed tokens. The first round is shown apart: caches of the vocabulary are cold then.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "formats/gguf.h"
#include "text/grammar/constraint.h"
#include "text/tokenizer.h"

namespace {

using namespace hearth;
using namespace hearth::text;

// Time of this thread alone, in microseconds: a busy machine disturbs it less.
struct Clock {
  static double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  }
};
double us_since(double begin) { return Clock::now() - begin; }

Tokenizer open_tokenizer(const std::string& path) {
  const formats::GgufFile file = formats::GgufFile::open(path);
  const std::string prefix = "tokenizer.ggml.";
  GgufTokenizer t;
  t.model = std::string(file.string(prefix + "model").value_or(""));
  t.pre = std::string(file.string(prefix + "pre").value_or(""));
  if (const auto tokens = file.strings(prefix + "tokens"))
    for (const std::string_view s : *tokens) t.tokens.emplace_back(s);
  if (const auto merges = file.strings(prefix + "merges"))
    for (const std::string_view s : *merges) t.merges.emplace_back(s);
  if (const auto types = file.array(prefix + "token_type"))
    for (size_t i = 0; i < types->size(); ++i) t.types.push_back(static_cast<int32_t>(types->integer(i)));
  if (const auto scores = file.array(prefix + "scores"))
    for (size_t i = 0; i < scores->size(); ++i) t.scores.push_back(static_cast<float>(scores->number(i)));
  t.bos = file.integer(prefix + "bos_token_id");
  t.eos = file.integer(prefix + "eos_token_id");
  t.unk = file.integer(prefix + "unknown_token_id");
  return Tokenizer(tables_from_gguf(t, file.name()));
}

struct Times {
  std::vector<double> mask, accept, apply;
  void add(const Times& other) {
    mask.insert(mask.end(), other.mask.begin(), other.mask.end());
    accept.insert(accept.end(), other.accept.begin(), other.accept.end());
    apply.insert(apply.end(), other.apply.begin(), other.apply.end());
  }
};

std::string shown(std::vector<double> all) {
  if (all.empty()) return "-";
  std::sort(all.begin(), all.end());
  const auto at = [&](double q) { return all[static_cast<size_t>(q * static_cast<double>(all.size() - 1))]; };
  return fmt::format("p50 {:7.1f}  p99 {:8.1f}  max {:8.1f} us  (n {})", at(0.5), at(0.99), all.back(), all.size());
}

struct Bench {
  std::shared_ptr<const VocabularyIndex> vocabulary;
  const Tokenizer& tokenizer;
  int rounds;

  // slow: names the places whose masks took longer than a millisecond.
  Times follow(const GrammarPtr& grammar, const std::string& text, bool slow = false) const {
    GrammarMatcher m(grammar, vocabulary);
    Constraint constraint(grammar, vocabulary, {});
    std::vector<uint64_t> bits(vocabulary->words());
    std::vector<float> logits(static_cast<size_t>(vocabulary->vocab_size()));
    Times times;
    for (const int32_t id : tokenizer.encode(text, {.add_special = false})) {
      auto begin = Clock::now();
      m.mask(bits);
      times.mask.push_back(us_since(begin));
      if (slow && times.mask.back() > 1000)
        fmt::print("  {:.1f} ms before \"{}\"\n", times.mask.back() / 1000, tokenizer.piece(id));
      begin = Clock::now();
      const bool accepted = m.accept(id);
      times.accept.push_back(us_since(begin));
      std::fill(logits.begin(), logits.end(), 0.0f);
      begin = Clock::now();
      constraint.apply(logits);
      times.apply.push_back(us_since(begin));
      constraint.accept(id);
      const bool masked = bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1;
      if (!accepted || !masked)
        fail(ErrorKind::invalid_argument, "token \"{}\" of the text: accepted {}, in the mask {}", tokenizer.piece(id),
             accepted, masked);
    }
    if (!m.accepting()) fail(ErrorKind::invalid_argument, "the text is not complete");
    return times;
  }

  Times random_walk(const GrammarPtr& grammar, uint64_t seed) const {
    std::mt19937_64 rng(seed);
    GrammarMatcher m(grammar, vocabulary);
    std::vector<uint64_t> bits(vocabulary->words());
    Times times;
    for (int step = 0; step < 200 && !m.finished(); ++step) {
      auto begin = Clock::now();
      m.mask(bits);
      times.mask.push_back(us_since(begin));
      std::vector<int32_t> ids;
      for (int32_t id = 0; id < vocabulary->vocab_size(); ++id)
        if (bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1 && !vocabulary->is_end(id)) ids.push_back(id);
      if (ids.empty()) break;
      begin = Clock::now();
      m.accept(ids[rng() % ids.size()]);
      times.accept.push_back(us_since(begin));
    }
    return times;
  }

  template <class Make>
  void run(const std::string& name, const std::string& text, const Make& make) const {
    auto begin = Clock::now();
    const GrammarPtr grammar = make();
    const double compile_us = us_since(begin);
    begin = Clock::now();
    vocabulary->warm(*grammar);
    const double warm_us = us_since(begin);
    const Times cold = follow(grammar, text, true);
    Times warm, walks;
    for (int i = 0; i < rounds; ++i) warm.add(follow(grammar, text));
    for (int i = 0; i < rounds; ++i) walks.add(random_walk(grammar, static_cast<uint64_t>(i)));
    fmt::print("{}: compiled in {:.1f} ms, warmed in {:.1f} ms\n  mask, first round  {}\n  mask, later        {}\n",
               name, compile_us / 1000, warm_us / 1000, shown(cold.mask), shown(warm.mask));
    fmt::print("  mask, random ids   {}\n  accept             {}\n  apply to logits    {}\n", shown(walks.mask),
               shown(warm.accept), shown(warm.apply));
  }
};

std::string tools_schema(int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format(
        R"({}{{"type":"object","properties":{{"name":{{"const":"tool_{}"}},"arguments":{{"type":"object","properties":{{
        "path":{{"type":"string"}},"query_{}":{{"type":"string","maxLength":200}},"limit":{{"type":"integer","minimum":1,
        "maximum":1000}},"mode":{{"enum":["fast","slow","exact"]}},"tags":{{"type":"array","items":{{"type":"string"}}}}
        }},"required":["path"],"additionalProperties":false}}}},"required":["name","arguments"],
        "additionalProperties":false}})",
        i > 0 ? "," : "", i, i);
  return R"({"anyOf":[)" + out + "]}";
}

const std::string kProse =
    "The quick brown fox jumps over the lazy dog; then, on 12 May, it wrote \\\"hello\\\" to its neighbours \\u00e9 "
    "and "
    "went home. Grüße, 日本語の文章 and a few more words to fill the line with what models write.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"times of grammar masks"};
  std::string path;
  int rounds = 20;
  app.add_option("model", path)->required();
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    const Tokenizer tokenizer = open_tokenizer(path);
    const auto begin = Clock::now();
    const auto vocabulary = std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());
    fmt::print("V = {}, index made in {:.1f} ms\n", vocabulary->vocab_size(), us_since(begin) / 1000);
    const Bench bench{vocabulary, tokenizer, rounds};
    const auto schema = [](const std::string& text) { return compile_json_schema(json::parse(text, "schema"), {}); };

    bench.run("object with strings, numbers, enum",
              R"({"name": ")" + kProse + R"(", "age": 42, "kind": "b", "tags": ["x y", "z"], "score": -1.5e3})", [&] {
                return schema(R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},
                  "kind":{"enum":["a","b","c"]},"tags":{"type":"array","items":{"type":"string"}},
                  "score":{"type":"number"}},"required":["name","age"],"additionalProperties":false})");
              });
    bench.run("bounded strings", R"({"code": "abc", "text": ")" + kProse + R"("})", [&] {
      return schema(R"({"type":"object","properties":{"code":{"type":"string","minLength":2,"maxLength":8},
        "text":{"type":"string","maxLength":300}},"required":["code","text"],"additionalProperties":false})");
    });
    bench.run(
        "open object, other members allowed", R"({"a": 1, "other": ")" + kProse + R"(", "more": {"x": [1, 2]}})",
        [&] { return schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}})"); });
    bench.run("any JSON object", R"({"a": ")" + kProse + R"(", "b": [1, 2.5, {"c": null}], "d": true})",
              [] { return compile_json_object(); });
    bench.run("200 tools",
              R"({"name": "tool_117", "arguments": {"path": ")" + kProse + R"(", "limit": 10, "mode": "fast"}})",
              [&] { return schema(tools_schema(200)); });
    bench.run(
        "pattern and format", R"({"id": "item-0042-zz", "when": "2024-02-29T10:00:00Z", "mail": "a.b@example.org"})",
        [&] {
          return schema(R"({"type":"object","properties":{"id":{"type":"string","pattern":"^item-[0-9]{4}-[a-z]+$"},
                  "when":{"type":"string","format":"date-time"},"mail":{"type":"string","format":"email"}},
                  "required":["id","when","mail"],"additionalProperties":false})");
        });
    bench.run("regex of prose", "Answer: the quick brown fox jumps over the lazy dog (42).\n",
              [] { return compile_regex(R"(Answer: .+ \(\d+\)\.\n)"); });
    bench.run("EBNF of sums", "(12+3)*4-(5*(6+7))", [] {
      return compile_ebnf(
          "root ::= term ([-+] term)*\nterm ::= factor ([*/] factor)*\nfactor ::= [0-9]+ | \"(\" root \")\"");
    });
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return exit_code(e.kind());
  }
}
