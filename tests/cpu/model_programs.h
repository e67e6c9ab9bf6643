// Small programs shaped like the model families, for tests.
#pragma once
#include <cmath>
#include <string>

#include "graph/builder.h"

namespace hearth::testing {

struct ModelShape {
  int64_t L = 2, D = 256, H = 6, Hkv = 2, Dh = 64, F = 512, V = 300;
  int64_t window = 0;  // of even layers
  float cap = 0, logit_cap = 0;
  bool qk_norm = false, sandwich = false, bias = false, tied = true;
  graph::Activation act = graph::Activation::silu;
  graph::KvFormat kv = graph::KvFormat::bf16;
  DType activation = DType::f32;
  bool encoder = false;  // no cache; results are pooled rows
};

inline graph::RopeSpec rope_spec(int64_t rot, double base) {
  graph::RopeSpec spec{.inv_freq = {}, .rot = rot, .pair_stride = rot / 2};
  for (int64_t i = 0; i < rot / 2; ++i)
    spec.inv_freq.push_back(
        static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rot))));
  return spec;
}

inline graph::Program model_program(const ModelShape& s) {
  graph::Builder b(s.activation);
  b.segment("embed");
  const graph::Value table = b.matrix("embed_tokens", s.V, s.D);
  graph::Value x = b.embed(table);
  if (s.sandwich) x = b.scale(x, std::sqrt(static_cast<float>(s.D)));
  const graph::Value angles = b.rope_angles(rope_spec(s.Dh, 10000.0));
  for (int64_t l = 0; l < s.L; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    b.segment("layers." + std::to_string(l));
    const auto project = [&](graph::Value in, const std::string& name, int64_t N, int64_t K, bool bias) {
      return b.linear(in, b.matrix(at + name, N, K), bias ? b.vector(at + name + ".bias", N) : graph::Value{});
    };
    const auto norm = [&](graph::Value in, const std::string& name, int64_t n, int64_t width) {
      return b.rms_norm(in, b.vector(at + name + "_norm", n), 1e-6f, width);
    };
    const graph::Value h = norm(x, "input", s.D, 0);
    graph::Value q = project(h, "q_proj", s.H * s.Dh, s.D, s.bias);
    graph::Value k = project(h, "k_proj", s.Hkv * s.Dh, s.D, s.bias);
    const graph::Value v = project(h, "v_proj", s.Hkv * s.Dh, s.D, s.bias);
    if (s.qk_norm) {
      q = norm(q, "q", s.Dh, s.Dh);
      k = norm(k, "k", s.Dh, s.Dh);
    }
    q = b.rope(q, angles, s.H, s.Dh);
    k = b.rope(k, angles, s.Hkv, s.Dh);
    const graph::AttendSpec spec{.H = s.H,
                                 .Hkv = s.Hkv,
                                 .Dh = s.Dh,
                                 .scale = 1 / std::sqrt(static_cast<float>(s.Dh)),
                                 .cap = s.cap,
                                 .window = l % 2 == 0 ? s.window : 0,
                                 .format = s.kv,
                                 .donor = {}};
    const graph::Value a = s.encoder ? b.attend_plain(q, k, v, spec) : b.attend(q, k, v, spec);
    graph::Value o = project(a, "o_proj", s.D, s.H * s.Dh, false);
    if (s.sandwich) o = norm(o, "post_attention", s.D, 0);
    x = b.add(x, o);
    const graph::Value u = norm(x, "mlp", s.D, 0);
    const graph::Value gate = project(u, "gate_proj", s.F, s.D, false), up = project(u, "up_proj", s.F, s.D, false);
    graph::Value d = project(b.gated_act(gate, up, s.act), "down_proj", s.D, s.F, false);
    if (s.sandwich) d = norm(d, "post_mlp", s.D, 0);
    x = b.add(x, d);
  }
  b.segment("head");
  if (s.encoder) return b.finish({b.pool(x, graph::Pooling::mean, true)});
  const graph::Value last = b.rms_norm(b.gather_rows(x), b.vector("final_norm", s.D), 1e-6f);
  graph::Value logits = b.linear(last, s.tied ? table : b.matrix("lm_head", s.V, s.D), {}, true);
  if (s.logit_cap > 0) logits = b.softcap(logits, s.logit_cap);
  return b.finish({logits});
}

}  // namespace hearth::testing
