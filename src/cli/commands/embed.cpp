#include <bit>
#include <utility>

#include "base/base64.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "decode/embed.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "an embedding model: a .gguf file, a model folder, or a name in the store"},
    {.name = "TEXT", .help = "the texts; - reads standard input, a text a line", .required = false, .repeat = true},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "instruction",
         .kind = ValueKind::text,
         .value = "TEXT",
         .help = "what the texts are asked for: they become queries, in a line behind this one",
         .filled = true},
    Flag{.name = "dimensions",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "the first N numbers of each vector, of length 1 again (default: all)",
         .min = 1,
         .max = 1 << 20},
    Flag{.name = "encoding",
         .kind = ValueKind::choice,
         .value = "float|base64",
         .fallback = "float",
         .help = "numbers, or the bytes of their little-endian float32"},
    Flag{.name = "pooling",
         .kind = ValueKind::choice,
         .value = "mean|cls|last",
         .help = "in place of what the model's files say"},
};
constexpr std::array kShared = {engine_flag("executor"), engine_flag("threads"), engine_flag("numerics"),
                                engine_flag("memory-budget"), engine_flag("pack-cache")};
constexpr auto kFlags = joined(kOwnFlags, kShared);

std::optional<graph::Pooling> pooling_flag(const Args& args) {
  const std::optional<std::string> word = args.text("pooling");
  if (!word) return std::nullopt;
  return *word == "mean" ? graph::Pooling::mean : *word == "cls" ? graph::Pooling::cls : graph::Pooling::last;
}

// TEXTs in their order, the lines of standard input in place of "-".
std::vector<std::string> texts_of(const Context& context) {
  std::vector<std::string> texts;
  bool stdin_read = false;
  for (const std::string& text : context.args().positionals("TEXT")) {
    if (text != "-") {
      texts.push_back(text);
      continue;
    }
    if (std::exchange(stdin_read, true)) fail(ErrorKind::invalid_argument, "standard input can be read once");
    const std::string all = read_stdin();
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      std::string line = all.substr(begin, end - begin);
      if (line.ends_with('\r')) line.pop_back();
      texts.push_back(std::move(line));
      begin = end + 1;
    }
  }
  if (texts.empty()) fail(ErrorKind::invalid_argument, "embed takes TEXT, or - for the lines of standard input");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) fail(ErrorKind::invalid_argument, "text {} is empty", i + 1);
    require_utf8(texts[i], fmt::format("text {}", i + 1));
  }
  return texts;
}

std::string encoded(std::span<const float> vector) {
  static_assert(std::endian::native == std::endian::little);
  return base64(std::as_bytes(vector));
}

void print(const Context& context, const decode::Vectors& vectors, bool as_base64) {
  for (int64_t i = 0; i < vectors.count; ++i)
    if (as_base64) context.print("{}\n", encoded(vectors[i]));
    else context.print("{}\n", fmt::join(vectors[i], " "));
}

void add(json::Object& document, const decode::Vectors& vectors, const decode::TextIds& ids, bool as_base64) {
  document["dimensions"] = vectors.dimensions;
  json::Array tokens, list;
  for (const std::vector<int32_t>& text : ids) tokens.emplace_back(static_cast<int64_t>(text.size()));
  for (int64_t i = 0; i < vectors.count; ++i) {
    if (as_base64) {
      list.emplace_back(encoded(vectors[i]));
      continue;
    }
    json::Array numbers;
    for (const float value : vectors[i]) numbers.emplace_back(double{value});
    list.emplace_back(std::move(numbers));
  }
  document["tokens"] = std::move(tokens);
  document["embeddings"] = std::move(list);
}

int run(Context& context) {
  const Args& args = context.args();
  const std::vector<std::string> texts = texts_of(context);
  require_utf8(args.text("instruction").value_or(""), "--instruction");
  const hub::FoundModel found = find_model(context);
  const std::shared_ptr<model::Model> model = model::Model::open(found.path);

  // All that can be refused is refused before a weight is read.
  const model::EmbeddingSpec embedding = decode::embedding_of(*model, pooling_flag(args));
  const int64_t dimensions = decode::checked_dimensions(model->spec(), args.integer("dimensions").value_or(0));
  const text::Tokenizer tokenizer(model->tokenizer());
  const decode::TextIds ids =
      decode::embedding_ids(tokenizer, texts, args.text("instruction"), model->spec(), embedding);

  const decode::EmbedderOptions options{
      .numerics = graph::parse_numerics(*args.text("numerics")),
      .pooling = embedding.pooling,
      .memory_budget = args.bytes("memory-budget").value_or(decode::default_memory_budget())};
  std::optional<decode::Embedder> embedder;
  {
    Progress progress(context, "loading " + found.name, Progress::Unit::share);
    embedder.emplace(model, make_executor(context, *model), options,
                     [&](int64_t done, int64_t total) { progress.show(done, total); });
  }
  for (const std::string& name : model->weights().surplus())
    context.detail("{}: tensor {} is not used", found.name, name);
  Progress progress(context, "embedding", Progress::Unit::count);
  const decode::Vectors vectors = embedder->embed(
      ids, {.dimensions = dimensions, .progress = [&](int64_t done, int64_t total) { progress.show(done, total); }});

  const bool as_base64 = *args.text("encoding") == "base64";
  if (context.json()) {
    json::Object document;
    document["model"] = found.name;
    document["pooling"] = model::name_of(embedding.pooling);
    document["normalized"] = embedding.normalize;
    document["encoding"] = *args.text("encoding");
    add(document, vectors, ids, as_base64);
    context.print_json(std::move(document));
  } else {
    print(context, vectors, as_base64);
  }
  return 0;
}

}  // namespace

const Command kEmbed = {
    .name = "embed",
    .aliases = "",
    .summary = "vectors of texts, by an embedding model",
    .details =
        "A vector a line, its numbers separated by spaces. A text that is longer than\n"
        "the model takes is refused, never cut.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
