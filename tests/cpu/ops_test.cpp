// Each op alone against its reference, random shapes with outliers, in A = f32, bf16 and f16.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/program_runs.h"
#include "support/scale.h"

namespace hearth::testing {
namespace {

using graph::Activation;
using graph::Builder;
using graph::Value;

// The program gets its input from an embedding table of plain rows: row m of x is row ids[m].
struct OpCase {
  DType activation = DType::f32;
  int64_t D = 0, M = 0;
  float size = 1;

  Value input(Builder& b, const char* name, int64_t cols) const { return b.embed(b.matrix(name, 64, cols)); }
};

// |y - want| <= ulps eps_A |want| + absolute.
void check(const OpCase& c, const graph::Program& program, double ulps, double absolute, const std::string& what) {
  const std::vector<PackedFormat> plain = {{.codec = Codec::f32}};
  WeightSet weights = random_weight_set(program, plain, static_cast<uint32_t>(c.D + c.M));
  std::mt19937 random(static_cast<uint32_t>(c.D));
  for (auto& [name, w] : weights.tensors)
    if (w.N == 64)  // tables: outliers among ordinary values
      for (int64_t i = 0; i < w.N * w.K; ++i) {
        float x = std::normal_distribution<float>(0, c.size)(random);
        if (random() % 50 == 0) x *= 20;
        std::memcpy(w.data.data() + 4 * i, &x, 4);
      }
  const graph::Limits limits{.rows_max = 80,
                             .sequences_max = 2,
                             .positions_max = 128,
                             .gathered_max = 80,
                             .numerics = graph::Numerics::parity};
  const std::vector<Piece> pieces = {{0, random_ids(random, c.M, 64), 3}, {1, random_ids(random, 2, 64), 0}};
  Session reference(graph::make_reference_executor(1), program, weights, limits, 2);
  const Rows want = reference.step(pieces);
  const double eps = c.activation == DType::bf16 ? 0x1p-8 : c.activation == DType::f16 ? 0x1p-11 : 0x1p-24;
  Rows first;
  for (const cpu::Isa isa : cpu::available_isas())
    for (const int threads : {1, 3}) {
      Session session(cpu_executor(isa, threads), program, weights, limits, 2);
      const Rows y = session.step(pieces);
      if (first.empty()) first = y;
      for (size_t r = 0; r < want.size(); ++r) {
        expect_same_bits(first[r], y[r], what + " " + std::string(cpu::name_of(isa)));
        for (size_t i = 0; i < want[r].size(); ++i)
          ASSERT_LE(std::abs(double{y[r][i]} - want[r][i]), ulps * eps * std::abs(want[r][i]) + absolute)
              << what << ", D = " << c.D << ", M = " << c.M << ", " << cpu::name_of(isa) << ", " << threads
              << " threads, value " << i << ": " << y[r][i] << ", reference " << want[r][i];
      }
    }
}

template <class Make>
void for_cases(const Make& make) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const auto& [D, M] : {std::pair<int64_t, int64_t>{16, 1}, {40, 7}, {576, 2}, {1, 5}, {250, 33}})
      make(OpCase{type, D, M});
}

TEST(Ops, elementwise) {
  for_cases([](OpCase c) {
    Builder b(c.activation);
    const Value x = c.input(b, "x", c.D), z = c.input(b, "z", c.D), column = c.input(b, "column", 1);
    const Value v = b.vector("v", c.D);
    // One rounding each: equal to the reference, which rounds the same fp32 result.
    check(c,
          b.finish({b.scale(x, 0.37f), b.add(x, z), b.mul(x, z), b.mul(x, column), b.add(x, column), b.mul(x, v),
                    b.add(x, v)}),
          0, 0, "elementwise");
  });
}

TEST(Ops, activations) {
  for_cases([](OpCase c) {
    c.size = 4;
    Builder b(c.activation);
    const Value x = c.input(b, "x", c.D);
    std::vector<Value> y;
    for (const Activation f : {Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu,
                               Activation::relu2, Activation::sigmoid, Activation::tanh})
      y.push_back(b.act(x, f));
    // kernels/math.inl: 3 ulp and 2^-24 |x|, |x| up to 80 sigmas; a rounding to A may then fall on the other side.
    check(c, b.finish({y[0], y[1], y[2], y[3], y[4], y[5], y[6]}), 7, 0x1p-24 * 320, "act");
    Builder g(c.activation);
    const Value gate = c.input(g, "x", c.D), up = c.input(g, "z", c.D);
    check(c, g.finish({g.gated_act(gate, up, Activation::silu)}), 9, 0x1p-24 * 320 * 320, "gated_act");
    Builder s(c.activation);
    check(c, s.finish({s.softcap(c.input(s, "x", c.D), 30)}), 6, 0, "softcap");
  });
}

TEST(Ops, norms) {
  for_cases([](OpCase c) {
    Builder b(c.activation);
    const Value x = c.input(b, "x", c.D), w = b.vector("w_norm", c.D);
    const int64_t width = c.D % 8 == 0 ? c.D / 8 : c.D;
    // The sum of D squares is off by (D / 32 + 5) eps at most, its root by half of that; three more roundings.
    const double ulps = c.activation == DType::f32 ? static_cast<double>(c.D) / 32 + 10 : 4;
    check(c,
          b.finish({b.rms_norm(x, w, 1e-5f), b.rms_norm(x, {}, 1e-5f),
                    b.rms_norm(x, b.vector("h_norm", width), 1e-6f, width)}),
          ulps, 0, "rms_norm");
    if (c.D == 1) return;  // x - mean is zero
    Builder l(c.activation);
    const Value y = l.layer_norm(c.input(l, "x", c.D), l.vector("w_norm", c.D), l.vector("bias", c.D), 1e-5f);
    // x - mean cancels: its error is eps of the largest |x| (about 60 sigmas) over the deviation.
    check(c, l.finish({y}), ulps, 2 * (static_cast<double>(c.D) / 32 + 10) * 60 * 0x1p-24, "layer_norm");
  });
}

TEST(Ops, rope) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t stride : {0, 16, 24}) {
      OpCase c{type, 3 * 64, 9};
      Builder b(type);
      graph::RopeSpec spec{.inv_freq = {}, .rot = 32, .pair_stride = stride};
      for (int i = 0; i < 16; ++i) spec.inv_freq.push_back(std::pow(100.0f, -static_cast<float>(i) / 16));
      spec.attention_factor = 1.2f;
      check(c, b.finish({b.rope(c.input(b, "x", c.D), b.rope_angles(spec), 3, 64)}), 0, 0, "rope");
    }
}

TEST(Ops, lora) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t M : {1, 9}) {
      OpCase c{type, 100, M};
      Builder b(type);
      const Value x = c.input(b, "x", c.D), y = c.input(b, "y", 72);
      // Sums of 100 and of 5 terms of products up to 20 * 20 * 3.
      check(c, b.finish({b.lora(y, x, b.matrix("a", c.D, 5), b.matrix("b", 5, 72), 0.5f)}), 4, 105 * 0x1p-24 * 100,
            "lora");
    }
}

TEST(Ops, shapes) {
  for (const int64_t M : {1, 30}) {
    OpCase c{DType::f32, 96, M};
    Builder b(c.activation);
    const Value x = c.input(b, "x", c.D), z = c.input(b, "z", 32);
    const Value slice = b.slice_cols(x, 20, 84);
    const Value joined = b.concat_cols(slice, z);
    check(c, b.finish({slice, joined, b.gather_rows(joined), b.add(slice, slice), joined}), 0, 0, "shapes");
    for (const graph::Pooling pooling : {graph::Pooling::last, graph::Pooling::cls, graph::Pooling::mean}) {
      Builder p(c.activation);
      const Value rows = c.input(p, "x", c.D);
      // A mean of M values: M roundings of sums up to 60 sigmas.
      check(c, p.finish({p.pool(rows, pooling, false), p.pool(rows, pooling, true)}), 4,
            static_cast<double>(M) * 60 * 0x1p-24, "pool");
    }
  }
}

// Keys and values go straight from tables to the cache, so that both executors hold the same bits in it.
TEST(Ops, attention_of_every_cache_format) {
  struct Shape {
    int64_t H, Hkv, Dh, window;
    float cap;
  };
  using graph::KvFormat;
  const int32_t long_prompt = test::scale() < 1 ? 70 : 333;  // shorter where each row costs more; both pass a page
  for (const Shape& s :
       {Shape{6, 2, 64, 0, 0}, Shape{4, 1, 128, 90, 20}, Shape{3, 3, 40, 0, 0}, Shape{14, 2, 64, 300, 0}})
    for (const KvFormat format : {KvFormat::f32, KvFormat::bf16, KvFormat::q8, KvFormat::q4}) {
      const bool quantized = format == KvFormat::q8 || format == KvFormat::q4;
      if (quantized && s.Dh % graph::kKvGroup != 0) continue;
      Builder b(DType::f32);
      const Value q = b.embed(b.matrix("q", 64, s.H * s.Dh)), k = b.embed(b.matrix("k", 64, s.Hkv * s.Dh));
      const Value v = b.embed(b.matrix("v", 64, s.Hkv * s.Dh));
      graph::AttendSpec spec{.H = s.H, .Hkv = s.Hkv, .Dh = s.Dh};
      spec.scale = 1 / std::sqrt(static_cast<float>(s.Dh));
      spec.cap = s.cap;
      spec.window = s.window;
      spec.format = format;
      const graph::Program program = b.finish({b.attend(q, k, v, spec)});
      const std::vector<PackedFormat> plain = {{.codec = Codec::f32}};
      WeightSet weights = random_weight_set(program, plain, 3);
      std::mt19937 random(5);
      for (auto& [name, w] : weights.tensors) w = random_weights(random, w.format, w.N, w.K, 1);
      const graph::Limits limits{.rows_max = 400, .sequences_max = 2, .positions_max = 640, .gathered_max = 400};
      const std::vector<std::vector<Piece>> steps = {
          {{0, random_ids(random, long_prompt, 64), 0}, {1, random_ids(random, 3, 64), 0}},
          {{1, random_ids(random, 70, 64), 3, graph::MaskKind::full}},
          {{0, random_ids(random, 1, 64), long_prompt}},
      };
      Session reference(graph::make_reference_executor(1), program, weights, limits, 2, 8);
      std::vector<Rows> want;
      for (const auto& step : steps) want.push_back(reference.step(step));
      // z = q . k / sqrt(Dh) is off by Dh eps / 2 of sum |q k| / sqrt(Dh), at most about 2 sqrt(Dh); weights by twice
      // that plus an ulp of exp, and sums of S terms by S eps / 2; values lie within 5.
      const double eps = 0x1p-24, Dh = static_cast<double>(s.Dh);
      const double bound = 5 * (2 * Dh * eps * 2 * std::sqrt(Dh) + 2 * 334 * eps + 8 * eps);
      std::vector<Rows> first;
      for (const cpu::Isa isa : cpu::available_isas())
        for (const int threads : {1, 2}) {
          Session cpu(cpu_executor(isa, threads), program, weights, limits, 2, 3);
          for (size_t i = 0; i < steps.size(); ++i) {
            const Rows y = cpu.step(steps[i]);
            if (first.size() <= i) first.push_back(y);
            const std::string what = fmt::format("Dh {}, format {}, {}, {} threads, step {}", s.Dh,
                                                 static_cast<int>(format), cpu::name_of(isa), threads, i);
            expect_same_bits(first[i][0], y[0], what);
            for (size_t at = 0; at < y[0].size(); ++at)
              ASSERT_LE(std::abs(double{y[0][at]} - want[i][0][at]), bound) << what << ", value " << at;
          }
        }
    }
}

TEST(Ops, linears_of_every_format) {
  std::mt19937 random(31);
  for (const PackedFormat& format : all_formats())
    for (const graph::Numerics numerics :
         {graph::Numerics::parity, graph::Numerics::deterministic, graph::Numerics::fast})
      for (const int64_t M : {1, 2, 11}) {
        const int64_t K = 512, N = 80;
        Builder b(DType::f32);
        const Value x = b.embed(b.matrix("x", 64, K));
        const Value w = b.matrix("w", N, K), bias = b.vector("bias", N);
        const Value y = b.linear(x, w, bias);
        const Value act =
            b.gated_act(b.linear(x, b.matrix("g", 96, K)), b.linear(x, b.matrix("u", 96, K)), Activation::relu);
        const Value sum = b.add(b.linear(x, b.matrix("o", K, K)), x);
        const graph::Program program = b.finish({y, act, sum});
        WeightSet weights = random_weight_set(program, {&format, 1}, 5);
        weights.tensors["x"] = random_weights(random, {.codec = Codec::f32}, 64, K, 1);
        const graph::Limits limits{
            .rows_max = 16, .sequences_max = 1, .positions_max = 0, .gathered_max = 400, .numerics = numerics};
        Session reference(graph::make_reference_executor(1), program, weights, limits, 1);
        Session cpu(cpu_executor(cpu::available_isas().back(), 2), program, weights, limits, 1);
        const std::vector<Piece> pieces = {{0, random_ids(random, M, 64), 0}};
        const Rows want = reference.step(pieces), got = cpu.step(pieces);
        // As in executor_programs_test; a product of two linears counts twice; scales may be rounded to f16.
        const double each = numerics == graph::Numerics::fast            ? std::sqrt(32.0 / 3) / 254
                            : numerics == graph::Numerics::deterministic ? std::sqrt(512.0 / 3) / 65024
                                                                         : 512 * 0x1p-24;
        for (size_t r = 0; r < want.size(); ++r)
          EXPECT_LE(relative_error(got[r], want[r]), 2 * (each + 0x1p-11))
              << name_of(format) << ", " << graph::name_of(numerics) << ", M = " << M << ", result " << r;
      }
}

}  // namespace
}  // namespace hearth::testing
