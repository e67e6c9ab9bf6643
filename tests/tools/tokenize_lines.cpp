// tool_tokenize_lines: a tokenizer behind a command line, for the oracle tests in Python.
//   tool_tokenize_lines KIND FILE[,FILE] MODE [FLAG ...]
//     KIND   json (tokenizer.json) | spm (tokenizer.model) | gguf (its metadata as JSON) | gpt2 (vocab.json,merges.txt)
//            | bert (vocab.txt)
//     MODE   encode: stdin holds texts (u32 size, bytes), stdout gets ids (u32 count, i32 each)
//            quoted: encode with parse-special, each text followed by its quoted stretches (u32 count, i32 begin or
//            end) decode: the other way round stream: like decode, by piece_bytes() piece after piece
//     FLAG   parse-special, add-special (encode); skip-special (decode); tokenizer_config=FILE,
//     special_tokens_map=FILE,
//            added_tokens=FILE: what lies beside the tokenizer's file
// All numbers are little-endian.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace {

using namespace hearth;
using namespace hearth::text;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::not_found, "{}: cannot be opened", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

GgufTokenizer gguf_from_json(const std::string& text, const std::string& what) {
  const json::Value root = json::parse(text, what);
  GgufTokenizer g;
  const auto strings = [&](const char* key, std::vector<std::string>& out) {
    if (const json::Value* v = root.get(key))
      for (const json::Value& s : v->as_array(what)) out.push_back(s.as_string(what));
  };
  const auto integer = [&](const char* key, std::optional<int64_t>& out) {
    if (const json::Value* v = root.get(key)) out = v->as_int(what);
  };
  const auto flag = [&](const char* key, std::optional<bool>& out) {
    if (const json::Value* v = root.get(key)) out = v->as_bool(what);
  };
  g.model = root.get("model")->as_string(what);
  if (root.get("pre")) g.pre = root.get("pre")->as_string(what);
  strings("tokens", g.tokens);
  strings("merges", g.merges);
  if (const json::Value* v = root.get("scores"))
    for (const json::Value& s : v->as_array(what)) g.scores.push_back(static_cast<float>(s.as_double(what)));
  if (const json::Value* v = root.get("token_type"))
    for (const json::Value& s : v->as_array(what)) g.types.push_back(s.as_int(what));
  integer("bos_token_id", g.bos);
  integer("eos_token_id", g.eos);
  integer("eot_token_id", g.eot);
  integer("unknown_token_id", g.unk);
  integer("seperator_token_id", g.sep);
  integer("cls_token_id", g.cls);
  flag("add_bos_token", g.add_bos);
  flag("add_eos_token", g.add_eos);
  flag("add_space_prefix", g.add_space_prefix);
  flag("remove_extra_whitespaces", g.remove_extra_whitespaces);
  if (const json::Value* v = root.get("precompiled_charsmap"))
    for (const json::Value& b : v->as_array(what)) g.precompiled_charsmap += static_cast<char>(b.as_int(what));
  return g;
}

TokenizerTables load(const std::string& kind, const std::string& files) {
  const size_t comma = files.find(',');
  const std::string first = files.substr(0, comma);
  const std::string text = read_file(first);
  if (kind == "json") return parse_tokenizer_json(text, first);
  if (kind == "spm") return parse_sentencepiece_model(std::as_bytes(std::span(text)), first);
  if (kind == "gguf") return tables_from_gguf(gguf_from_json(text, first), first);
  if (kind == "gpt2") return tables_from_vocab_merges(text, read_file(files.substr(comma + 1)), first);
  if (kind == "bert") return tables_from_vocab_txt(text, first);
  fail(ErrorKind::invalid_argument, "unknown kind {}", kind);
}

std::optional<TokenizerConfigFiles::File> beside(const std::set<std::string>& flags, const std::string& name) {
  for (const std::string& flag : flags)
    if (flag.starts_with(name + "=")) {
      const std::string path = flag.substr(name.size() + 1);
      return TokenizerConfigFiles::File{read_file(path), path};
    }
  return std::nullopt;
}

bool read_size(uint32_t& size) { return std::fread(&size, sizeof size, 1, stdin) == 1; }

template <class T>
void read_items(std::vector<T>& items, uint32_t size) {
  items.resize(size);
  if (std::fread(items.data(), sizeof(T), size, stdin) != size) fail(ErrorKind::io, "stdin ends inside a record");
}

void write_items(const void* items, size_t count, size_t size) {
  const auto n = static_cast<uint32_t>(count);
  std::fwrite(&n, sizeof n, 1, stdout);
  std::fwrite(items, size, count, stdout);
}

void run(int argc, char** argv) {
  if (argc < 4) fail(ErrorKind::invalid_argument, "usage: tool_tokenize_lines KIND FILE[,FILE] MODE [FLAG ...]");
  const std::string mode = argv[3];
  const std::set<std::string> flags(argv + 4, argv + argc);
  TokenizerTables tables = load(argv[1], argv[2]);
  apply_config_files(tables, {.tokenizer_config = beside(flags, "tokenizer_config"),
                              .special_tokens_map = beside(flags, "special_tokens_map"),
                              .added_tokens = beside(flags, "added_tokens")});
  const Tokenizer tokenizer(std::move(tables));
  const EncodeOptions options{
      .parse_special = flags.contains("parse-special"), .add_special = flags.contains("add-special"), .quoted = {}};
  uint32_t size = 0;
  std::vector<char> text;
  std::vector<int32_t> ids;
  while (read_size(size)) {
    if (mode == "encode") {
      read_items(text, size);
      ids = tokenizer.encode({text.data(), text.size()}, options);
      write_items(ids.data(), ids.size(), sizeof(int32_t));
      continue;
    }
    if (mode == "quoted") {
      read_items(text, size);
      if (!read_size(size)) fail(ErrorKind::io, "stdin ends inside a record");
      read_items(ids, size);
      std::vector<ByteRange> quoted;
      for (size_t i = 0; i + 1 < ids.size(); i += 2)
        quoted.push_back({static_cast<size_t>(ids[i]), static_cast<size_t>(ids[i + 1])});
      ids = tokenizer.encode({text.data(), text.size()},
                             {.parse_special = true, .add_special = flags.contains("add-special"), .quoted = quoted});
      write_items(ids.data(), ids.size(), sizeof(int32_t));
      continue;
    }
    read_items(ids, size);
    std::string out;
    if (mode == "decode") out = tokenizer.decode(ids, flags.contains("skip-special"));
    else
      for (size_t i = 0; i < ids.size(); ++i) out += tokenizer.piece_bytes(ids[i], i == 0);
    write_items(out.data(), out.size(), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return exit_code(e.kind());
  }
}
