// How a model makes vectors of texts, as its own files say (spec models 26).
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "graph/program.h"
#include "model/spec.h"

namespace hearth::model {

struct EmbeddingSpec {
  graph::Pooling pooling = graph::Pooling::mean;
  bool normalize = true;       // vectors have length 1
  int64_t tokens_max = 0;      // of a text, with what the tokenizer puts around it
  bool include_prompt = true;  // an instruction's rows are pooled with the text's
};

std::string_view name_of(graph::Pooling pooling);  // "last", "mean", "cls"

// What a model does where its files say nothing but that vectors are its work: mean for encoders, last for decoders.
EmbeddingSpec default_embedding(const ModelSpec& spec);

// The small files of a model folder: their text, and the name that messages give them.
class SmallFiles {
 public:
  virtual ~SmallFiles() = default;
  virtual std::optional<std::string> read(const std::string& name) const = 0;  // "1_Pooling/config.json"; none: absent
  virtual std::string place(const std::string& name) const = 0;
};

// Of a folder: modules.json with the Pooling module's config.json and perhaps Normalize, sentence_bert_config.json;
// without modules.json 1_Pooling/config.json; else the defaults for an encoder or beside one of the two files
// config_sentence_transformers.json and sentence_bert_config.json. nullopt: no file says that vectors are its work.
// `lowers`, asked only where a file wants it: whether the tokenizer makes lower case of a text by itself.
// Throws Error{corrupt_file} naming file and member; Error{invalid_argument} for modules and poolings that are not
// supported, by name.
std::optional<EmbeddingSpec> embedding_of_folder(const SmallFiles& files, const ModelSpec& spec,
                                                 const std::function<bool()>& lowers);
std::optional<EmbeddingSpec> embedding_of_folder(const std::filesystem::path& folder, const ModelSpec& spec,
                                                 const std::function<bool()>& lowers);

// Of a GGUF: <architecture>.pooling_type (1 mean, 2 cls, 3 last; 0 says nothing). Throws as above, 4 (a ranking head)
// being unsupported.
std::optional<EmbeddingSpec> embedding_of_gguf(const formats::GgufFile& file, const ModelSpec& spec);

}  // namespace hearth::model
