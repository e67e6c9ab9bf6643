#include "decode/embed.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "decode/load.h"
#include "decode/memory.h"
#include "decode/too_large.h"
#include "model/forward.h"

namespace hearth::decode {
namespace {

int64_t size_of(const std::vector<int32_t>& ids) { return static_cast<int64_t>(ids.size()); }

// The first `to` of each row's `from` values, side by side; of length 1 again where the whole rows are.
void cut(std::vector<float>& values, int64_t from, int64_t to, bool normalize) {
  if (from == to) return;
  const int64_t rows = static_cast<int64_t>(values.size()) / from;
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = values.data() + i * from;
    double squares = 0;
    for (int64_t d = 0; d < to; ++d) squares += double{row[d]} * row[d];
    const double norm = normalize ? std::max(std::sqrt(squares), 1e-12) : 1.0;
    for (int64_t d = 0; d < to; ++d) values[static_cast<size_t>(i * to + d)] = static_cast<float>(row[d] / norm);
  }
  values.resize(static_cast<size_t>(rows * to));
}

void check_text(const model::ModelSpec& spec, const model::EmbeddingSpec& embedding, const std::vector<int32_t>& ids,
                size_t i) {
  if (ids.empty()) fail(ErrorKind::invalid_argument, "text {} has no tokens", i + 1);
  if (size_of(ids) > embedding.tokens_max)
    fail(ErrorKind::invalid_argument, "text {} has {} tokens, {} takes {} at most", i + 1, ids.size(), spec.file,
         embedding.tokens_max);
  for (const int32_t id : ids)
    if (id < 0 || id >= spec.V)
      fail(ErrorKind::invalid_argument, "text {}: token id {} is outside the vocabulary of {}", i + 1, id, spec.V);
}

}  // namespace

bool is_embedding_model(const model::Model& model) { return model.embedding().has_value(); }

model::EmbeddingSpec embedding_of(const model::Model& model, std::optional<graph::Pooling> pooling) {
  std::optional<model::EmbeddingSpec> embedding = model.embedding();
  if (!embedding && !pooling)
    fail(ErrorKind::invalid_argument,
         "{} is no embedding model: neither its architecture nor a file (modules.json, 1_Pooling/config.json, GGUF "
         "pooling_type) says how vectors are pooled",
         model.path().string());
  if (!embedding) embedding = model::default_embedding(model.spec());
  if (pooling) embedding->pooling = *pooling;
  return *embedding;
}

std::string instructed(std::string_view text, std::string_view instruction) {
  return fmt::format("Instruct: {}\nQuery:{}", instruction, text);
}

TextIds embedding_ids(const text::Tokenizer& tokenizer, std::span<const std::string> texts,
                      const std::optional<std::string>& instruction, const model::ModelSpec& spec,
                      const model::EmbeddingSpec& embedding, const std::atomic<bool>* cancel) {
  if (instruction && !embedding.include_prompt)
    fail(ErrorKind::invalid_argument, "this model pools a text without its instruction, which is not supported");
  TextIds ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (cancel && cancel->load(std::memory_order_relaxed))
      fail(ErrorKind::cancelled, "interrupted before text {} of {}", i + 1, texts.size());
    if (texts[i].empty()) fail(ErrorKind::invalid_argument, "text {} is empty", i + 1);
    ids.push_back(tokenizer.encode(instruction ? instructed(texts[i], *instruction) : texts[i],
                                   {.parse_special = false, .add_special = true}));
    check_text(spec, embedding, ids.back(), i);
  }
  return ids;
}

void check_texts(const model::ModelSpec& spec, const model::EmbeddingSpec& embedding, const TextIds& texts) {
  for (size_t i = 0; i < texts.size(); ++i) check_text(spec, embedding, texts[i], i);
}

int64_t checked_dimensions(const model::ModelSpec& spec, int64_t dimensions) {
  if (dimensions < 0 || dimensions > spec.D)
    fail(ErrorKind::invalid_argument, "{} dimensions were asked for, vectors of {} have {}", dimensions, spec.file,
         spec.D);
  return dimensions == 0 ? spec.D : dimensions;
}

Embedder::Embedder(std::shared_ptr<model::Model> model, std::unique_ptr<graph::Executor> executor,
                   EmbedderOptions options, const std::function<void(int64_t, int64_t)>& progress)
    : model_(std::move(model)),
      executor_(std::move(executor)),
      options_(options),
      embedding_(embedding_of(*model_, options.pooling)) {
  require_numerics(*executor_, options_.numerics);
  const model::ModelSpec& spec = model_->spec();
  const bool parity = options_.numerics == graph::Numerics::parity;
  program_ =
      model::embedding_forward(spec, {.activation = options_.activation.value_or(parity ? spec.dtype : DType::f32),
                                      .pooling = embedding_.pooling,
                                      .normalize = embedding_.normalize});
  budget_ = options_.memory_budget > 0 ? options_.memory_budget : default_memory_budget();
  const int64_t rows = options_.rows_max > 0 ? options_.rows_max : kEmbedRows;
  limits_ = embed_limits(rows, options_.numerics);
  need_ = weights_need(*model_, *executor_, program_);
  need_.arena = working_need(limits_);
  if (need_.total() > budget_)
    throw TooLarge(fmt::format("{}: steps of {} tokens need {} MB, the memory budget is {} MB", spec.file, rows,
                               need_.total() / 1'000'000, budget_ / 1'000'000),
                   need_.total(), budget_);
  weights_ = load_weights(*model_, *executor_, program_, progress);
  plan_ = executor_->prepare(program_, limits_);
}

int64_t Embedder::working_need(const graph::Limits& limits) const {
  const graph::Executor::PlanExtent plan{program_, limits};
  return executor_->working_need({&plan, 1});
}

void Embedder::make_room(int64_t rows) {
  if (rows <= limits_.rows_max) return;
  const auto larger = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const graph::Limits limits = embed_limits(std::max(rows, std::min(larger, embedding_.tokens_max)), options_.numerics);
  MemoryNeed need = need_;
  need.arena = working_need(limits);
  if (need.total() > budget_)
    fail(ErrorKind::out_of_memory, "{}: a text of {} tokens needs {} MB, the memory budget is {} MB",
         model_->spec().file, rows, need.total() / 1'000'000, budget_ / 1'000'000);
  plan_ = executor_->prepare(program_, limits);
  limits_ = limits;
}

void Embedder::step(std::span<const std::vector<int32_t>> texts, std::span<float> out) {
  ids_.clear(), positions_.clear(), row_begin_.assign(1, 0), lengths_.clear();
  for (const std::vector<int32_t>& text : texts) {
    ids_.insert(ids_.end(), text.begin(), text.end());
    for (size_t t = 0; t < text.size(); ++t) positions_.push_back(static_cast<int32_t>(t));
    row_begin_.push_back(static_cast<int32_t>(ids_.size()));
    lengths_.push_back(static_cast<int32_t>(text.size()));
  }
  masks_.assign(texts.size(), model_->spec().encoder() ? graph::MaskKind::full : graph::MaskKind::causal);
  const std::span<float> results[] = {out};
  executor_->run(*plan_, {.weights = weights_,
                          .batch = {.ids = ids_,
                                    .positions = positions_,
                                    .row_begin = row_begin_,
                                    .kv_len = lengths_,
                                    .tables = {},
                                    .adapter = {},
                                    .out_rows = {},
                                    .masks = masks_},
                          .kv = nullptr,
                          .results = results});
  executor_->wait();
}

Vectors Embedder::embed(const TextIds& texts, const EmbedRequest& request) {
  const int64_t D = dimensions(), wanted = checked_dimensions(model_->spec(), request.dimensions);
  check_texts(model_->spec(), embedding_, texts);
  int64_t longest = 0;
  for (const std::vector<int32_t>& text : texts) longest = std::max(longest, size_of(text));
  make_room(longest);

  Vectors vectors{.count = static_cast<int64_t>(texts.size()), .dimensions = wanted};
  vectors.values.resize(texts.size() * static_cast<size_t>(D));
  for (size_t begin = 0; begin < texts.size();) {
    if (request.cancel && request.cancel->load(std::memory_order_relaxed))
      fail(ErrorKind::cancelled, "interrupted after {} of {} texts", begin, texts.size());
    size_t end = begin;
    int64_t rows = 0;
    while (end < texts.size() && rows + size_of(texts[end]) <= limits_.rows_max &&
           static_cast<int64_t>(end - begin) < limits_.sequences_max)
      rows += size_of(texts[end++]);
    const std::span<float> out =
        std::span(vectors.values).subspan(begin * static_cast<size_t>(D), (end - begin) * static_cast<size_t>(D));
    step(std::span(texts).subspan(begin, end - begin), out);
    for (size_t i = 0; i < out.size(); ++i)
      if (!std::isfinite(out[i]))
        fail(ErrorKind::corrupt_file, "{}: the vector of text {} is not finite; hearth doctor --deep reads the weights",
             model_->spec().file, begin + i / static_cast<size_t>(D) + 1);
    vectors.tokens += rows;
    begin = end;
    if (request.progress) request.progress(static_cast<int64_t>(begin), vectors.count);
  }
  cut(vectors.values, D, wanted, embedding_.normalize);
  return vectors;
}

}  // namespace hearth::decode
