// Encoders in the shape of BERT: three tables, layer_norm with biases, gelu, full attention, pooled rows.
#include <gtest/gtest.h>

#include "cpu/program_runs.h"
#include "support/outcome.h"

namespace hearth::testing {
namespace {

using graph::Builder;
using graph::MaskKind;
using graph::Numerics;
using graph::Value;

struct EncoderShape {
  int64_t L = 2, D = 96, H = 3, F = 192, V = 50, positions = 80;
  graph::Pooling pooling = graph::Pooling::mean;
  DType activation = DType::f32;
};

graph::Program encoder_program(const EncoderShape& s) {
  Builder b(s.activation);
  const auto norm = [&](Value x, const std::string& name) {
    return b.layer_norm(x, b.vector(name + "_norm", s.D), b.vector(name + "_bias", s.D), 1e-12f);
  };
  const auto linear = [&](Value x, const std::string& name, int64_t N, int64_t K) {
    return b.linear(x, b.matrix(name, N, K), b.vector(name + ".bias", N));
  };
  b.segment("embed");
  Value x = b.add(b.embed(b.matrix("words", s.V, s.D)), b.embed_row(b.matrix("types", 2, s.D), 0));
  x = norm(b.add(x, b.embed_positions(b.matrix("positions", s.positions + 2, s.D), 2)), "embed");
  for (int64_t l = 0; l < s.L; ++l) {
    const std::string at = "layer." + std::to_string(l) + ".";
    b.segment(at);
    const Value q = linear(x, at + "q", s.D, s.D), k = linear(x, at + "k", s.D, s.D), v = linear(x, at + "v", s.D, s.D);
    const int64_t Dh = s.D / s.H;
    const float scale = 1 / std::sqrt(static_cast<float>(Dh));
    const Value a = b.attend_plain(q, k, v, {.H = s.H, .Hkv = s.H, .Dh = Dh, .scale = scale, .donor = {}});
    x = norm(b.add(x, linear(a, at + "o", s.D, s.D)), at + "attention");
    const Value h = b.act(linear(x, at + "up", s.F, s.D), graph::Activation::gelu);
    x = norm(b.add(x, linear(h, at + "down", s.D, s.F)), at + "output");
  }
  b.segment("pool");
  return b.finish({b.pool(x, s.pooling, true)});
}

std::vector<PackedFormat> plain_formats() { return {{Codec::f32}, {Codec::f16}, {Codec::bf16}}; }

graph::Limits limits_of(Numerics numerics) {
  return {.rows_max = 160, .sequences_max = 4, .positions_max = 0, .gathered_max = 160, .numerics = numerics};
}

std::vector<Piece> texts() {
  std::mt19937 random(8);
  std::vector<Piece> pieces;
  int64_t sequence = 0;
  for (const int64_t n : {70, 1, 17, 64}) pieces.push_back({sequence++, random_ids(random, n, 50), 0, MaskKind::full});
  return pieces;
}

TEST(EncoderPrograms, agree_with_the_reference) {
  for (const graph::Pooling pooling : {graph::Pooling::mean, graph::Pooling::cls, graph::Pooling::last})
    for (const DType activation : {DType::f32, DType::bf16}) {
      const EncoderShape shape{.pooling = pooling, .activation = activation};
      const graph::Program program = encoder_program(shape);
      const WeightSet weights = random_weight_set(program, plain_formats(), 2);
      Session reference(graph::make_reference_executor(1), program, weights, limits_of(Numerics::parity), 4);
      Session cpu(cpu_executor(cpu::available_isas().back(), 2), program, weights, limits_of(Numerics::parity), 4);
      // Plain weights: fp32 sums of K terms in each of 6 linears a layer, passed on by norms; with A = bf16 roundings
      // that fall the other way.
      const double each = activation == DType::f32 ? static_cast<double>(shape.F) * 0x1p-24 : 4 * 0x1p-9;
      EXPECT_LE(relative_error(cpu.step(texts())[0], reference.step(texts())[0]),
                4 * 6 * static_cast<double>(shape.L) * each)
          << static_cast<int>(pooling) << " " << name_of(activation);
    }
}

TEST(EncoderPrograms, every_instruction_set_gives_the_same_bits) {
  const graph::Program program = encoder_program({});
  for (const auto& formats : {plain_formats(), all_formats()}) {
    const WeightSet weights = random_weight_set(program, formats, 3);
    std::vector<float> first;
    for (const cpu::Isa isa : cpu::available_isas()) {
      Session session(cpu_executor(isa, 2), program, weights, limits_of(Numerics::deterministic), 4);
      const std::vector<float> y = session.step(texts())[0];
      if (first.empty()) first = y;
      expect_same_bits(first, y, std::string(cpu::name_of(isa)));
    }
  }
}

TEST(EncoderPrograms, neighbours_threads_and_order_change_no_bit) {
  const graph::Program program = encoder_program({});
  const WeightSet weights = random_weight_set(program, all_formats(), 4);
  Session one(cpu_executor(cpu::available_isas().back(), 1), program, weights, limits_of(Numerics::deterministic), 4);
  Session three(cpu_executor(cpu::available_isas().back(), 3), program, weights, limits_of(Numerics::deterministic), 4);
  std::vector<Piece> pieces = texts();
  const std::vector<float> together = three.step(pieces)[0];
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<float> row(together.begin() + static_cast<int64_t>(i * 96),
                                 together.begin() + static_cast<int64_t>((i + 1) * 96));
    expect_same_bits(one.step({pieces[i]})[0], row, "text " + std::to_string(i));
  }
  std::swap(pieces[0], pieces[3]);
  const std::vector<float> swapped = three.step(pieces)[0];
  EXPECT_TRUE(std::equal(together.begin(), together.begin() + 96, swapped.begin() + 3 * 96));
}

TEST(EncoderPrograms, a_position_beyond_the_table_is_refused) {
  const graph::Program program = encoder_program({.positions = 16});
  const WeightSet weights = random_weight_set(program, plain_formats(), 5);
  Session session(cpu_executor(cpu::available_isas().back(), 1), program, weights, limits_of(Numerics::parity), 4);
  const Piece fits{0, std::vector<int32_t>(16, 1), 0, MaskKind::full};
  EXPECT_EQ(session.step({fits})[0].size(), 96u);
  const Piece longer{0, std::vector<int32_t>(17, 1), 0, MaskKind::full};
  EXPECT_EQ(test::outcome([&] { session.step({longer}); }), "invalid_argument: run: position 16 of a table of 16");
}

}  // namespace
}  // namespace hearth::testing
