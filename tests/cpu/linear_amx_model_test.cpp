// The AMX kernels over a model of the tile registers in portable C++, with the two sets a panel of the generic kernels,
// whose bits they must give. Panels of four sets, and the real tiles, run in linear_core_test where the CPU has them.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "cpu/linear/share.h"
#include "cpu/target.h"
#include "linear_cases.h"

namespace hearth::cpu::amx_model::matrix {

// What LDTILECFG set, and eight registers of 16 rows of 64 bytes.
struct Tiles {
  int step = 0;
  uint8_t bytes[8][16][64] = {};
};
inline Tiles tiles_now;

inline int rows_of(int tile) { return tile >= 6 ? tiles_now.step / 4 : 16; }
inline int row_bytes_of(int tile) { return tile == 4 || tile == 5 ? tiles_now.step : 64; }

inline void tile_config(int step) {
  tiles_now = Tiles{};
  tiles_now.step = step;
}
inline void tile_release() { tiles_now.step = 0; }
template <int kTile>
void tile_zero() {
  std::memset(tiles_now.bytes[kTile], 0, sizeof tiles_now.bytes[kTile]);
}
template <int kTile>
void tile_load(const void* p, int64_t stride) {
  tile_zero<kTile>();
  for (int r = 0; r < rows_of(kTile); ++r)
    std::memcpy(tiles_now.bytes[kTile][r], static_cast<const char*>(p) + r * stride,
                static_cast<size_t>(row_bytes_of(kTile)));
}
template <int kTile>
void tile_store(int32_t (*p)[16]) {
  std::memcpy(p, tiles_now.bytes[kTile], sizeof tiles_now.bytes[kTile]);
}
// TDPBUSD's sibling TDPBSUD: sum[m][n] += x[m][4 q + b] (signed) * w[q][4 n + b] (unsigned).
template <int kSum, int kX, int kW>
void tile_dot() {
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      int32_t sum;
      std::memcpy(&sum, &tiles_now.bytes[kSum][m][4 * n], 4);
      for (int i = 0; i < tiles_now.step; ++i)
        sum += static_cast<int8_t>(tiles_now.bytes[kX][m][i]) * int32_t{tiles_now.bytes[kW][i / 4][4 * n + i % 4]};
      std::memcpy(&tiles_now.bytes[kSum][m][4 * n], &sum, 4);
    }
}

}  // namespace hearth::cpu::amx_model::matrix

#define HEARTH_ISA amx_model
// clang-format off: each builds on those before it
#include "cpu/kernels/linear_ops_generic.inl"
#include "cpu/kernels/linear_quads.inl"
#include "cpu/kernels/linear_dots_planes.inl"
#include "cpu/kernels/linear_tiles_amx.inl"
#include "cpu/kernels/linear_panel.inl"
// clang-format on

namespace hearth::cpu {
namespace {

using namespace testing;

template <class Mode, int kBits, bool kHalf>
std::vector<float> through_tiles(const Matrix& w, Core core, const std::vector<float>& x, int64_t M) {
  using namespace amx_model::matrix;
  const ActLayout layout = act_layout(core, w.K(), false);
  Buffer act(layout.row * M), scratch(linear_scratch_bytes(M, w.K()));
  quantize_rows({.core = core, .K = w.K(), .x = x.data(), .ldx = w.K(), .act = act.data(), .isa = Isa::generic}, 0, M);
  std::vector<float> y(static_cast<size_t>(M * w.N()));
  const Share share{.shape = shape_of(w.format()),
                    .core = core,
                    .N = w.N(),
                    .K = w.K(),
                    .block_begin = 0,
                    .block_end = blocks_of(w.N()),
                    .m_begin = 0,
                    .m_end = M,
                    .blocks = reinterpret_cast<const uint8_t*>(w.bytes().data() + kHeaderBytes),
                    .x = nullptr,
                    .ldx = 0,
                    .act = act.data(),
                    .layout = layout,
                    .y = y.data(),
                    .ldy = w.N(),
                    .bias = nullptr,
                    .accumulate = false,
                    .scratch = scratch.data()};
  const int64_t width = fold_width<Mode>(share.shape);
  tile_config(static_cast<int>(amx_step(width)));
  panel_share<Mode, kBits, kHalf>(share, scratch_of(share), width);
  tile_release();
  return y;
}

template <int kBits, bool kHalf>
void compare(const PackedFormat& format, int64_t K = 0) {
  if (K == 0) K = awkward_K(format);
  const int64_t N = 101, M = 37;
  const Matrix w = Matrix::pack(random_weights(format, N, K, 31).view());
  const std::vector<float> x = random_rows(M, K, 32);
  EXPECT_EQ((through_tiles<amx_model::matrix::S16, kBits, kHalf>(w, Core::s16, x, M)),
            multiply(w, x, M, {.core = Core::s16}))
      << name_of(format) << " K = " << K;
  EXPECT_EQ((through_tiles<amx_model::matrix::S8<kBits>, kBits, kHalf>(w, Core::s8, x, M)),
            multiply(w, x, M, {.core = Core::s8}))
      << name_of(format);
}

TEST(LinearAmxModel, groups_of_16_to_128_give_the_generic_bits) {
  compare<6, true>({.codec = Codec::q6_k});
  compare<2, true>({.codec = Codec::q2_k});
  compare<4, false>({.codec = Codec::q4_1});
  compare<5, false>({.codec = Codec::q5_0});
  compare<8, false>({.codec = Codec::q8_0});
  compare<4, false>({Codec::affine, 4, 64, DType::bf16});
  compare<8, false>({Codec::affine, 8, 128, DType::f16});
}

TEST(LinearAmxModel, any_number_of_folds_runs_through_the_ring) {
  for (const int64_t K : {32, 64, 96, 128, 160, 512 + 96}) compare<4, false>({.codec = Codec::q4_1}, K);
}

}  // namespace
}  // namespace hearth::cpu
