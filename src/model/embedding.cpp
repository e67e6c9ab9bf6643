#include "model/embedding.h"

#include <algorithm>

#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "formats/config.h"

namespace hearth::model {
namespace {

// A document and its place in messages; none where the file is absent.
struct Document {
  json::Value json;
  std::string place;

  static std::optional<Document> read(const SmallFiles& files, const std::string& name) {
    const std::optional<std::string> text = files.read(name);
    if (!text) return std::nullopt;
    return Document{json::parse(*text, files.place(name)), files.place(name)};
  }
};

[[noreturn]] void refuse_pooling(const std::string& place, std::string_view mode) {
  fail(ErrorKind::invalid_argument, "{}: pooling \"{}\" is not supported; supported: mean, cls, lasttoken", place,
       mode);
}

// A mode as the files spell it: "mean_tokens", "cls_token", "lasttoken"; newer ones "mean", "cls".
graph::Pooling pooling_of(std::string_view mode, const std::string& place) {
  if (mode == "mean_tokens" || mode == "mean") return graph::Pooling::mean;
  if (mode == "cls_token" || mode == "cls") return graph::Pooling::cls;
  if (mode == "lasttoken") return graph::Pooling::last;
  refuse_pooling(place, mode);
}

// config.json of a Pooling module: pooling_mode, or one member pooling_mode_<mode> that is true.
void read_pooling(const Document& config, const ModelSpec& spec, EmbeddingSpec& embedding) {
  std::vector<std::string> modes;
  for (const auto& [key, value] : config.json.as_object(config.place)) {
    const std::string place = fmt::format("{}: {}", config.place, key);
    constexpr std::string_view kMode = "pooling_mode_";
    if (key == "pooling_mode") modes = {value.as_string(place)};
    else if (key.starts_with(kMode) && value.as_bool(place)) modes.push_back(key.substr(kMode.size()));
    else if (key == "include_prompt") embedding.include_prompt = value.as_bool(place);
    else if ((key == "word_embedding_dimension" || key == "embedding_dimension") && value.as_int(place) != spec.D)
      fail(ErrorKind::corrupt_file, "{} is {}, the model's width is {}", place, value.as_int(place), spec.D);
  }
  if (modes.empty()) fail(ErrorKind::corrupt_file, "{}: no pooling mode is true", config.place);
  if (modes.size() > 1) refuse_pooling(config.place, fmt::format("{}", fmt::join(modes, " + ")));
  embedding.pooling = pooling_of(modes[0], config.place);
}

// max_seq_length and do_lower_case of sentence_bert_config.json.
void read_limits(const Document& config, const std::function<bool()>& lowers, EmbeddingSpec& embedding) {
  config.json.as_object(config.place);
  if (const json::Value* length = config.json.get("max_seq_length")) {
    const std::string place = config.place + ": max_seq_length";
    if (length->as_int(place) < 1) fail(ErrorKind::corrupt_file, "{} is {}", place, length->as_int(place));
    embedding.tokens_max = std::min(embedding.tokens_max, length->as_int(place));
  }
  const json::Value* lower = config.json.get("do_lower_case");
  if (lower && lower->as_bool(config.place + ": do_lower_case") && !lowers())
    fail(ErrorKind::invalid_argument, "{}: do_lower_case beside a tokenizer that keeps capitals is not supported",
         config.place);
}

// A module's folder as a prefix of names: one plain name with a slash behind it, or nothing.
std::string folder_of(const json::Value& module, const std::string& place) {
  const json::Value* path = module.get("path");
  const std::string name = path ? path->as_string(place + ": path") : "";
  if (name.starts_with('.') || name.find('/') != name.npos || name.find('\0') != name.npos)
    fail(ErrorKind::corrupt_file, "{}: path is no plain name", place);
  return name.empty() ? "" : name + "/";
}

// modules.json: Transformer, Pooling, perhaps Normalize, in this order.
EmbeddingSpec read_modules(const Document& list, const SmallFiles& files, const ModelSpec& spec,
                           const std::function<bool()>& lowers) {
  EmbeddingSpec embedding = default_embedding(spec);
  embedding.normalize = false;
  size_t at = 0;
  bool pools = false;
  for (const json::Value& module : list.json.as_array(list.place)) {
    const json::Value* type = module.get("type");
    if (!type) fail(ErrorKind::corrupt_file, "{}: module {} has no type", list.place, at);
    const std::string& whole = type->as_string(list.place + ": type");
    const std::string_view kind = std::string_view(whole).substr(whole.rfind('.') + 1);
    const std::string folder = folder_of(module, list.place);
    if (kind == "Transformer" && at == 0) {
      if (const auto limits = Document::read(files, folder + "sentence_bert_config.json"))
        read_limits(*limits, lowers, embedding);
    } else if (kind == "Pooling" && at == 1) {
      const auto config = Document::read(files, folder + "config.json");
      if (!config)
        fail(ErrorKind::corrupt_file, "{} is absent, {} names it", files.place(folder + "config.json"), list.place);
      read_pooling(*config, spec, embedding);
      pools = true;
    } else if (kind == "Normalize" && at == 2) {
      embedding.normalize = true;
    } else {
      fail(ErrorKind::invalid_argument,
           "{}: module {} of type \"{}\" is not supported; supported: Transformer, Pooling and perhaps Normalize",
           list.place, at, whole);
    }
    ++at;
  }
  if (!pools) fail(ErrorKind::corrupt_file, "{}: no Pooling module", list.place);
  return embedding;
}

class FolderFiles final : public SmallFiles {
 public:
  explicit FolderFiles(const std::filesystem::path& folder) : folder_(folder) {}
  std::optional<std::string> read(const std::string& name) const override {
    if (!io::real_fs().exists(folder_ / name)) return std::nullopt;
    return io::real_fs().read_file(folder_ / name, formats::kConfigBytesMax);
  }
  std::string place(const std::string& name) const override { return (folder_ / name).string(); }

 private:
  const std::filesystem::path& folder_;
};

}  // namespace

std::string_view name_of(graph::Pooling pooling) {
  switch (pooling) {
    case graph::Pooling::last: return "last";
    case graph::Pooling::mean: return "mean";
    case graph::Pooling::cls: break;
  }
  return "cls";
}

EmbeddingSpec default_embedding(const ModelSpec& spec) {
  return {.pooling = spec.encoder() ? graph::Pooling::mean : graph::Pooling::last, .tokens_max = spec.context};
}

std::optional<EmbeddingSpec> embedding_of_folder(const SmallFiles& files, const ModelSpec& spec,
                                                 const std::function<bool()>& lowers) {
  if (const auto modules = Document::read(files, "modules.json")) return read_modules(*modules, files, spec, lowers);
  const auto pooling = Document::read(files, "1_Pooling/config.json");
  const auto limits = Document::read(files, "sentence_bert_config.json");
  if (!pooling && !limits && !spec.encoder() && !files.read("config_sentence_transformers.json")) return std::nullopt;
  EmbeddingSpec embedding = default_embedding(spec);
  if (pooling) read_pooling(*pooling, spec, embedding);
  if (limits) read_limits(*limits, lowers, embedding);
  return embedding;
}

std::optional<EmbeddingSpec> embedding_of_folder(const std::filesystem::path& folder, const ModelSpec& spec,
                                                 const std::function<bool()>& lowers) {
  return embedding_of_folder(FolderFiles(folder), spec, lowers);
}

std::optional<EmbeddingSpec> embedding_of_gguf(const formats::GgufFile& file, const ModelSpec& spec) {
  EmbeddingSpec embedding = default_embedding(spec);
  const std::string key = std::string(file.string("general.architecture").value_or("")) + ".pooling_type";
  const int64_t type = file.integer(key).value_or(0);
  switch (type) {
    case 0: return spec.encoder() ? std::optional(embedding) : std::nullopt;
    case 1: embedding.pooling = graph::Pooling::mean; return embedding;
    case 2: embedding.pooling = graph::Pooling::cls; return embedding;
    case 3: embedding.pooling = graph::Pooling::last; return embedding;
    default: break;
  }
  fail(ErrorKind::invalid_argument, "{}: {} {} is not supported; supported: 1 (mean), 2 (cls), 3 (last)", file.name(),
       key, type);
}

}  // namespace hearth::model
