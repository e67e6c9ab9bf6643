// A model as opened: spec, weights, tokenizer, template, defaults. Headers only are read; the rest is mapped.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/config.h"
#include "model/embedding.h"
#include "model/spec.h"
#include "model/weights.h"
#include "text/tokenizer/tables.h"

namespace hearth::model {

// Chat templates by name: "default", perhaps "tool_use" and others (spec models 33).
using Templates = std::map<std::string, std::string>;

// A tensor of the files, for listings.
struct ListedTensor {
  std::string name, type;         // "q4_k", "affine4_g64_bf16", "i64"
  std::vector<int64_t> shape;     // of its values, outermost first
  int64_t values = 0, bytes = 0;  // bytes with scales and biases
};

// Immutable after opening, but for the weight table, which the loading thread uses alone.
class Model {
 public:
  // A .gguf file, or a folder with config.json and *.safetensors. Throws Error{not_found, io, corrupt_file,
  // invalid_argument} as the formats do.
  static std::unique_ptr<Model> open(const std::filesystem::path& path);

  virtual ~Model() = default;
  const ModelSpec& spec() const { return spec_; }
  WeightTable& weights() const { return *weights_; }
  const std::filesystem::path& path() const { return path_; }
  const Templates& templates() const { return templates_; }
  // KV formats that the snapshot asks for, one a layer; empty: none said.
  const std::vector<graph::KvFormat>& kv() const { return kv_; }
  // generation_config.json as it is; empty: the snapshot has none.
  const json::Object& generation_config() const { return generation_config_; }
  // License and format, for `hearth show`.
  const std::string& license() const { return license_; }
  virtual std::string_view format() const = 0;  // "gguf" or "safetensors"
  virtual std::vector<ListedTensor> tensors() const = 0;

  // How the model makes vectors of texts; nullopt where no file says that this is its work. Reads small files anew.
  // Throws as embedding_of_folder() and embedding_of_gguf() do.
  virtual std::optional<EmbeddingSpec> embedding() const = 0;

  // Reads the tokenizer: the slow part of opening (some 100 k strings). Throws Error{not_found} when there is none.
  virtual text::TokenizerTables tokenizer() const = 0;

 protected:
  std::filesystem::path path_;
  ModelSpec spec_;
  std::unique_ptr<WeightTable> weights_;
  Templates templates_;
  std::vector<graph::KvFormat> kv_;
  std::string license_;
  json::Object generation_config_;
};

}  // namespace hearth::model
