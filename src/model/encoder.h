// The layers of BERT and XLM-RoBERTa (Devlin et al. 2019, Conneau et al. 2020): words, learned positions and a token
// type, LayerNorm behind every branch, full attention without a cache.
#pragma once
#include "graph/builder.h"
#include "model/spec.h"

namespace hearth::model {

// Writes embed and L layers of spec.encoder(): [M, D], the hidden state behind the last layer. Weight names are those
// of the hub's files behind "model.": "model.embeddings.word_embeddings", "model.encoder.layer.0.attention.self.query".
graph::Value encoder_rows(graph::Builder& b, const ModelSpec& spec);

}  // namespace hearth::model
