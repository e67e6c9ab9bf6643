#include "model/forward.h"

#include <optional>

#include "base/error.h"
#include "graph/builder.h"
#include "model/encoder.h"

namespace hearth::model {
namespace {

using graph::Builder;
using graph::Value;

struct Layer {
  Builder& b;
  const ModelSpec& s;
  std::string path;  // "model.layers.3"
  const LayerSpec& layer;
  std::optional<graph::KvFormat> kv;  // none: nothing is cached, the rows of a step see each other alone
  Value angles;                       // none: no rotary embedding
  bool centre_keys;

  Value norm(Value x, const char* name) const {
    return b.rms_norm(x, b.vector(fmt::format("{}.{}", path, name), s.D), s.eps);
  }
  Value linear(Value x, const char* name, int64_t N, int64_t K, bool bias) const {
    const std::string module = fmt::format("{}.{}", path, name);
    const Value W = b.matrix(module, N, K);
    return b.linear(x, W, bias ? b.vector(module + ".bias", N) : Value{});
  }

  Value attention(Value x) const {
    const int64_t Dq = s.H * s.Dh, Dkv = s.Hkv * s.Dh;
    Value q = linear(x, "self_attn.q_proj", Dq, s.D, s.qkv_bias);
    Value k = linear(x, "self_attn.k_proj", Dkv, s.D, s.qkv_bias);
    const Value v = linear(x, "self_attn.v_proj", Dkv, s.D, s.qkv_bias);
    if (s.qk_norm) {
      q = b.rms_norm(q, b.vector(path + ".self_attn.q_norm", s.Dh), s.eps, s.Dh);
      k = b.rms_norm(k, b.vector(path + ".self_attn.k_norm", s.Dh), s.eps, s.Dh);
    }
    if (angles) {
      q = b.rope(q, angles, s.H, s.Dh);
      k = b.rope(k, angles, s.Hkv, s.Dh);
    }
    if (centre_keys) k = b.add(k, b.vector(fmt::format("{}.self_attn.k_proj{}", path, kKeyOffset), Dkv));
    const graph::AttendSpec spec{.H = s.H,
                                 .Hkv = s.Hkv,
                                 .Dh = s.Dh,
                                 .scale = s.attention_scale,
                                 .cap = s.attention_cap,
                                 .window = layer.window,
                                 .format = kv.value_or(graph::KvFormat::f32),
                                 .donor = {}};
    const Value y = kv ? b.attend(q, k, v, spec) : b.attend_plain(q, k, v, spec);
    return linear(y, "self_attn.o_proj", s.D, Dq, s.o_bias);
  }

  Value mlp(Value x) const {
    const Value gate = linear(x, "mlp.gate_proj", s.F, s.D, s.mlp_bias);
    const Value up = linear(x, "mlp.up_proj", s.F, s.D, s.mlp_bias);
    return linear(b.gated_act(gate, up, s.activation), "mlp.down_proj", s.D, s.F, s.mlp_bias);
  }

  Value pre_norm(Value x) const {
    x = b.add(x, attention(norm(x, "input_layernorm")));
    return b.add(x, mlp(norm(x, "post_attention_layernorm")));
  }

  Value sandwich(Value x) const {
    x = b.add(x, norm(attention(norm(x, "input_layernorm")), "post_attention_layernorm"));
    return b.add(x, norm(mlp(norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm"));
  }
};

Value table_of(Builder& b, const ModelSpec& s) { return b.matrix("model.embed_tokens", s.V, s.D); }

// embed and the layers of a decoder: [M, D] in front of the last norm. Nothing is cached without `options`.
Value decoder_rows(Builder& b, const ModelSpec& s, const ForwardOptions* options) {
  b.segment("embed");
  Value x = b.embed(table_of(b, s));
  if (s.embed_scale != 0) x = b.scale(x, s.embed_scale);
  std::vector<Value> angles;
  for (const graph::RopeSpec& rope : s.ropes) angles.push_back(b.rope_angles(rope));
  for (int64_t i = 0; i < s.L; ++i) {
    b.segment(fmt::format("model.layers.{}", i));
    const LayerSpec& layer = s.layers[static_cast<size_t>(i)];
    std::optional<graph::KvFormat> kv;
    if (options) kv = options->kv.empty() ? graph::KvFormat::bf16 : options->kv[static_cast<size_t>(i)];
    const Layer l{b,
                  s,
                  fmt::format("model.layers.{}", i),
                  layer,
                  kv,
                  layer.rope < 0 ? Value{} : angles[static_cast<size_t>(layer.rope)],
                  options && options->centre_keys && kv == graph::KvFormat::bf16 && has_key_offset(s, i)};
    x = s.order == LayerOrder::sandwich ? l.sandwich(x) : l.pre_norm(x);
  }
  b.segment("head");
  return x;
}

Value last_norm(Builder& b, const ModelSpec& s, Value x) { return b.rms_norm(x, b.vector("model.norm", s.D), s.eps); }

}  // namespace

graph::Program forward(const ModelSpec& s, const ForwardOptions& options) {
  if (s.encoder())
    fail(ErrorKind::invalid_argument,
         "{}: a model of type {} makes vectors of texts and writes none; hearth embed uses it", s.file, s.model_type);
  HEARTH_CHECK(options.kv.empty() || static_cast<int64_t>(options.kv.size()) == s.L, "{} KV formats",
               options.kv.size());
  Builder b(options.activation);
  const Value x = last_norm(b, s, b.gather_rows(decoder_rows(b, s, &options)));
  Value logits = b.linear(x, s.tied ? table_of(b, s) : b.matrix("lm_head", s.V, s.D));
  if (s.logit_cap > 0) logits = b.softcap(logits, s.logit_cap);
  return b.finish({logits});
}

graph::Program embedding_forward(const ModelSpec& s, const EmbeddingForward& options) {
  Builder b(options.activation);
  Value x = s.encoder() ? encoder_rows(b, s) : last_norm(b, s, decoder_rows(b, s, nullptr));
  if (s.encoder()) b.segment("pool");
  return b.finish({b.pool(x, options.pooling, options.normalize)});
}

}  // namespace hearth::model
