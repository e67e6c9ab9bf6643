#include "model/forward.h"

#include "base/error.h"
#include "graph/builder.h"

namespace hearth::model {
namespace {

using graph::Builder;
using graph::Value;

struct Layer {
  Builder& b;
  const ModelSpec& s;
  std::string path;  // "model.layers.3"
  const LayerSpec& layer;
  graph::KvFormat kv;
  Value angles;  // none: no rotary embedding
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
    const Value y = b.attend(q, k, v,
                             {.H = s.H,
                              .Hkv = s.Hkv,
                              .Dh = s.Dh,
                              .scale = s.attention_scale,
                              .cap = s.attention_cap,
                              .window = layer.window,
                              .format = kv,
                              .donor = {}});
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

}  // namespace

graph::Program forward(const ModelSpec& s, const ForwardOptions& options) {
  HEARTH_CHECK(options.kv.empty() || static_cast<int64_t>(options.kv.size()) == s.L, "{} KV formats",
               options.kv.size());
  Builder b(options.activation);
  b.segment("embed");
  const Value table = b.matrix("model.embed_tokens", s.V, s.D);
  Value x = b.embed(table);
  if (s.embed_scale != 0) x = b.scale(x, s.embed_scale);
  std::vector<Value> angles;
  for (const graph::RopeSpec& rope : s.ropes) angles.push_back(b.rope_angles(rope));
  for (int64_t i = 0; i < s.L; ++i) {
    b.segment(fmt::format("model.layers.{}", i));
    const LayerSpec& layer = s.layers[static_cast<size_t>(i)];
    const graph::KvFormat kv = options.kv.empty() ? graph::KvFormat::bf16 : options.kv[static_cast<size_t>(i)];
    const Layer l{b,
                  s,
                  fmt::format("model.layers.{}", i),
                  layer,
                  kv,
                  layer.rope < 0 ? Value{} : angles[static_cast<size_t>(layer.rope)],
                  options.centre_keys && kv == graph::KvFormat::bf16 && has_key_offset(s, i)};
    x = s.order == LayerOrder::sandwich ? l.sandwich(x) : l.pre_norm(x);
  }
  b.segment("head");
  x = b.rms_norm(b.gather_rows(x), b.vector("model.norm", s.D), s.eps);
  Value logits = b.linear(x, s.tied ? table : b.matrix("lm_head", s.V, s.D));
  if (s.logit_cap > 0) logits = b.softcap(logits, s.logit_cap);
  return b.finish({logits});
}

}  // namespace hearth::model
