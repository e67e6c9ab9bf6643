#include <algorithm>
#include <map>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/units.h"
#include "decode/complete.h"
#include "decode/memory.h"
#include "graph/op_info.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "tensors", .help = "every tensor with its format and extents"},
};
constexpr auto kFlags = joined(kOwnFlags, kEngineFlags);

double bits_each(int64_t bytes, int64_t values) {
  return values > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(values) : 0;
}

std::optional<model::EmbeddingSpec> embedding_or_warning(const model::Model& model,
                                                         std::vector<std::string>& warnings) {
  try {
    return model.embedding();
  } catch (const Error& error) {
    warnings.push_back(error.what());
    return std::nullopt;
  }
}

int run(Context& context) {
  const hub::FoundModel found = find_model(context);
  const std::unique_ptr<model::Model> model = model::Model::open(found.path);
  const model::ModelSpec& s = model->spec();
  const decode::EngineOptions options = engine_options(context);

  int64_t weights = 0, bytes = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> by_type;  // weights, bytes
  const std::vector<model::ListedTensor> tensors = model->tensors();
  for (const model::ListedTensor& t : tensors) {
    auto& row = by_type[t.type];
    row.first += t.values;
    row.second += t.bytes;
    weights += t.values;
    bytes += t.bytes;
  }
  const double bpw = bits_each(bytes, weights);
  const std::unique_ptr<graph::Executor> executor = make_executor(context, *model);
  const decode::MemoryPlan memory_plan(*model, *executor, options);
  const int64_t kv_position = memory_plan.at(graph::kPagePositions).kv_per_position;
  const int64_t streamed = decode::streamed_bytes(*model, memory_plan.program());
  std::string template_kind = model->templates().contains("default") ? "yes" : "no";
  if (model->templates().contains("tool_use")) template_kind = "tool_use";
  std::string tokenizer_kind = "none";
  std::vector<int32_t> end_ids = s.end_ids;
  std::vector<std::string> warnings;
  try {
    text::TokenizerTables tables = model->tokenizer();
    tokenizer_kind = name_of(tables.model);
    const text::Tokenizer tokenizer(std::move(tables));
    end_ids = decode::end_ids(s, tokenizer);
    if (tokenizer.vocab_size() > s.V)
      warnings.push_back(fmt::format("the tokenizer has {} pieces, the model {}", tokenizer.vocab_size(), s.V));
  } catch (const Error& error) {
    warnings.push_back(error.what());
  }
  const std::optional<model::EmbeddingSpec> embedding = embedding_or_warning(*model, warnings);
  for (const auto& [name, source] : model->templates()) {
    try {
      text::ChatTemplate(source, "template " + name);
    } catch (const Error& error) {
      warnings.push_back(error.what());
    }
  }

  if (context.json()) {
    json::Object d;
    d["model"] = found.name;
    d["path"] = found.path.string();
    d["format"] = model->format();
    d["model_type"] = s.model_type;
    d["support"] = name_of(model::support_of(s.model_type));
    d["layers"] = s.L;
    d["hidden_size"] = s.D;
    d["heads"] = s.H;
    d["kv_heads"] = s.Hkv;
    d["head_dim"] = s.Dh;
    d["mlp_width"] = s.F;
    d["vocab_size"] = s.V;
    d["context"] = s.context;
    d["tied"] = s.tied;
    d["weights"] = weights;
    d["bytes"] = bytes;
    d["bits_per_weight"] = bpw;
    json::Object types;
    for (const auto& [type, row] : by_type) types[type] = row.second;
    d["bytes_by_type"] = std::move(types);
    d["streamed_bytes_per_token"] = streamed;
    d["kv_bytes_per_position"] = kv_position;
    d["tokenizer"] = tokenizer_kind;
    d["chat_template"] = template_kind;
    d["license"] = model->license();
    d["kv_config"] = !model->kv().empty();
    json::Value vectors;
    if (embedding) {
      json::Object row;
      row["pooling"] = model::name_of(embedding->pooling);
      row["normalized"] = embedding->normalize;
      row["tokens_max"] = embedding->tokens_max;
      vectors = std::move(row);
    }
    d["embedding"] = std::move(vectors);
    json::Array ends;
    for (const int32_t id : end_ids) ends.emplace_back(id);
    d["end_ids"] = std::move(ends);
    d["warnings"] = json::Array(warnings.begin(), warnings.end());
    json::Array memory;
    for (int64_t c = 1024; c <= s.context; c *= 4) {
      json::Object row;
      row["context"] = c;
      row["bytes"] = memory_plan.at(c).total();
      memory.emplace_back(std::move(row));
    }
    d["memory_by_context"] = std::move(memory);
    if (context.args().on("tensors")) {
      json::Array list;
      for (const model::ListedTensor& t : tensors) {
        json::Object row;
        row["name"] = t.name;
        row["format"] = t.type;
        row["shape"] = json::Array(t.shape.begin(), t.shape.end());
        row["bits_per_weight"] = bits_each(t.bytes, t.values);
        list.emplace_back(std::move(row));
      }
      d["tensors"] = std::move(list);
    }
    context.print_json(std::move(d));
    return 0;
  }

  context.print("{}\n", context.bold(found.name));
  context.print("  file           {} ({})\n", found.path.string(), model->format());
  context.print("  architecture   {} ({}): {} layers, width {}, {} heads ({} KV) of {}, MLP {}, vocabulary {}\n",
                s.model_type, name_of(model::support_of(s.model_type)), s.L, s.D, s.H, s.Hkv, s.Dh, s.F, s.V);
  const int64_t windowed = std::count_if(s.layers.begin(), s.layers.end(), [](const auto& l) { return l.window > 0; });
  if (windowed > 0)
    context.print("  windows        {} of {} layers see the last {} positions\n", windowed, s.L,
                  std::max_element(s.layers.begin(), s.layers.end(), [](const auto& a, const auto& b) {
                    return a.window < b.window;
                  })->window);
  context.print("  context        {} positions\n", s.context);
  context.print("  weights        {:.1f} M in {}, {:.2f} bits per weight; a token reads {}\n",
                static_cast<double>(weights) / 1e6, show_size(bytes), bpw, show_size(streamed));
  for (const auto& [type, row] : by_type)
    context.print("    {:<20} {:>7}  {:5.1f} %\n", type, show_size(row.second),
                  100.0 * static_cast<double>(row.second) / static_cast<double>(std::max<int64_t>(1, bytes)));
  if (embedding)
    context.print("  vectors        {} pooling{}, texts of up to {} tokens\n", model::name_of(embedding->pooling),
                  embedding->normalize ? ", of length 1" : "", embedding->tokens_max);
  if (!s.encoder()) context.print("  head           {}\n", s.tied ? "the embedding table" : "its own matrix");
  context.print("  tokenizer      {}{}\n", tokenizer_kind,
                end_ids.empty() ? "" : fmt::format("; end ids {}", fmt::join(end_ids, ", ")));
  if (!s.encoder()) context.print("  chat template  {}\n", template_kind);
  if (!model->license().empty()) context.print("  license        {}\n", printable(model->license(), 200));
  if (!s.encoder())
    context.print("  KV cache       {} a position{}\n", show_size(kv_position),
                  model->kv().empty() ? "" : ", formats by kv_config.json");
  for (int64_t c = 1024; c <= s.context; c *= 4)
    context.print("    {:>7} positions need {} of memory\n", c, show_size(memory_plan.at(c).total()));
  if (context.args().on("tensors"))
    for (const model::ListedTensor& t : tensors)
      context.print("  {:<48} {:<20} [{}]\n", printable(t.name, kSentenceBytesMax), t.type, fmt::join(t.shape, ", "));
  for (const std::string& sentence : warnings) context.warn("{}", sentence);
  return 0;
}

}  // namespace

const Command kShow = {
    .name = "show",
    .aliases = "",
    .summary = "facts of a model: architecture, sizes, memory",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
