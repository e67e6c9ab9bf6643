// Vectors of texts: one loaded embedding model on one executor. Encoders (BERT) and decoders (Qwen3-Embedding) alike,
// pooled as the model's files say (spec models 26).
//
//   Embedder embedder(model, std::move(executor), {});
//   const auto ids = embedding_ids(tokenizer, texts, instruction, model.spec(), embedder.embedding());
//   const Vectors vectors = embedder.embed(ids, {.dimensions = 256});
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/engine.h"
#include "graph/executor.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace hearth::decode {

using TextIds = std::vector<std::vector<int32_t>>;  // one list a text

// Whether the model's files say that vectors are its work: a server answers 400 for others. Throws Error{corrupt_file}
// for files that cannot be read, Error{invalid_argument} for an embedding model of a kind that is not supported.
bool is_embedding_model(const model::Model& model);

// How the model makes vectors; with `pooling` in place of the files', which need not say anything then.
// Throws Error{invalid_argument} for a model that is no embedding model.
model::EmbeddingSpec embedding_of(const model::Model& model, std::optional<graph::Pooling> pooling = {});

// "Instruct: <instruction>\nQuery:<text>" (spec server 53).
std::string instructed(std::string_view text, std::string_view instruction);

// What the tokenizer makes of the texts, with what it puts around them: [CLS] and [SEP], or the end of text that
// Qwen3-Embedding pools. Names of special tokens in a text are plain text. Throws Error{invalid_argument}: an empty
// text, by its number from 1 on; one that check_texts() refuses, before the next one is looked at; an instruction for a
// model that pools without it. Throws Error{cancelled} when `cancel` is set between two texts.
TextIds embedding_ids(const text::Tokenizer& tokenizer, std::span<const std::string> texts,
                      const std::optional<std::string>& instruction, const model::ModelSpec& spec,
                      const model::EmbeddingSpec& embedding, const std::atomic<bool>* cancel = nullptr);

// Throws Error{invalid_argument} naming the text from 1 on: no ids, more than tokens_max (both sizes; nothing is ever
// cut), an id outside the vocabulary.
void check_texts(const model::ModelSpec& spec, const model::EmbeddingSpec& embedding, const TextIds& texts);

// 0: all of them. Throws Error{invalid_argument} with the range.
int64_t checked_dimensions(const model::ModelSpec& spec, int64_t dimensions);

struct EmbedderOptions {
  graph::Numerics numerics = graph::Numerics::deterministic;
  std::optional<DType> activation;        // none: the checkpoint's type in parity mode, f32 otherwise
  std::optional<graph::Pooling> pooling;  // in place of the files'
  int64_t rows_max = 0;                   // of a step of several texts; 0: kEmbedRows. A longer text has its own step
  int64_t memory_budget = 0;              // bytes; 0: 0.75 of RAM or of the cgroup limit
};

struct EmbedRequest {
  int64_t dimensions = 0;                                          // the first so many, then of length 1 again; 0: all
  const std::atomic<bool>* cancel = nullptr;                       // read between steps
  std::function<void(int64_t done, int64_t total)> progress = {};  // texts
};

struct Vectors {
  std::vector<float> values;  // [count, dimensions]
  int64_t count = 0, dimensions = 0, tokens = 0;

  std::span<const float> operator[](int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * dimensions), static_cast<size_t>(dimensions));
  }
};

// Engine thread only. A text's vector depends on the text alone: not on its neighbours, nor on how steps are cut.
class Embedder {
 public:
  // Loads. Throws as Engine does, and Error{invalid_argument} for a model that is no embedding model.
  Embedder(std::shared_ptr<model::Model> model, std::unique_ptr<graph::Executor> executor, EmbedderOptions options,
           const std::function<void(int64_t done, int64_t total)>& progress = {});

  const model::Model& model() const { return *model_; }
  const model::EmbeddingSpec& embedding() const { return embedding_; }
  int64_t dimensions() const { return model_->spec().D; }
  const MemoryNeed& need() const { return need_; }  // as predicted before the load

  // Throws Error{invalid_argument} as check_texts() and checked_dimensions() do, before any work; Error{out_of_memory},
  // with both numbers, for a text whose step does not fit the budget; Error{corrupt_file} when weights make a vector
  // that is not finite; Error{cancelled}.
  Vectors embed(const TextIds& texts, const EmbedRequest& request = {});

 private:
  void make_room(int64_t rows);
  int64_t working_need(const graph::Limits& limits) const;
  void step(std::span<const std::vector<int32_t>> texts, std::span<float> out);

  std::shared_ptr<model::Model> model_;
  std::unique_ptr<graph::Executor> executor_;
  EmbedderOptions options_;
  model::EmbeddingSpec embedding_;
  MemoryNeed need_;
  int64_t budget_ = 0;
  graph::Program program_;
  std::vector<graph::WeightHandle> weights_;
  graph::Limits limits_;
  std::unique_ptr<graph::Plan> plan_;
  std::vector<int32_t> ids_, positions_, row_begin_, lengths_;
  std::vector<graph::MaskKind> masks_;
};

}  // namespace hearth::decode
