#include "model/encoder.h"

#include <fmt/format.h>

namespace hearth::model {
namespace {

using graph::Builder;
using graph::Value;

Value layer_norm(Builder& b, Value x, const std::string& module, const ModelSpec& s) {
  return b.layer_norm(x, b.vector(module, s.D), b.vector(module + ".bias", s.D), s.eps);
}

Value linear(Builder& b, Value x, const std::string& module, int64_t N, int64_t K) {
  return b.linear(x, b.matrix(module, N, K), b.vector(module + ".bias", N));
}

Value embedded(Builder& b, const ModelSpec& s) {
  const auto table = [&](const char* name, int64_t rows) {
    return b.matrix(fmt::format("model.embeddings.{}_embeddings", name), rows, s.D);
  };
  // One text a sequence: its type is the first. Sums in the order of the models' own code.
  Value x = b.add(b.embed(table("word", s.V)), b.embed_row(table("token_type", s.token_types), 0));
  x = b.add(x, b.embed_positions(table("position", s.position_rows), s.first_position));
  return layer_norm(b, x, "model.embeddings.LayerNorm", s);
}

Value layer(Builder& b, Value x, const std::string& path, const ModelSpec& s) {
  const std::string self = path + ".attention.self.";
  const Value q = linear(b, x, self + "query", s.D, s.D);
  const Value k = linear(b, x, self + "key", s.D, s.D);
  const Value v = linear(b, x, self + "value", s.D, s.D);
  const graph::AttendSpec spec{.H = s.H, .Hkv = s.Hkv, .Dh = s.Dh, .scale = s.attention_scale, .donor = {}};
  const Value a = linear(b, b.attend_plain(q, k, v, spec), path + ".attention.output.dense", s.D, s.D);
  x = layer_norm(b, b.add(x, a), path + ".attention.output.LayerNorm", s);
  const Value h = b.act(linear(b, x, path + ".intermediate.dense", s.F, s.D), s.activation);
  return layer_norm(b, b.add(x, linear(b, h, path + ".output.dense", s.D, s.F)), path + ".output.LayerNorm", s);
}

}  // namespace

Value encoder_rows(Builder& b, const ModelSpec& s) {
  b.segment("embed");
  Value x = embedded(b, s);
  for (int64_t i = 0; i < s.L; ++i) {
    const std::string path = fmt::format("model.encoder.layer.{}", i);
    b.segment(path);
    x = layer(b, x, path, s);
  }
  return x;
}

}  // namespace hearth::model
