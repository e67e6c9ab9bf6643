// Panels met by AMX: 16 rows of x times two sets, signed planes of x (tile rows: tokens) times unsigned quads of the
// panel (tile rows: quads, 16 dwords a set) in TDPBSUD. A fold is one dot of up to 64 values, or two for groups of 128;
// hi and lo planes sum apart and are joined in the fold, which is that of linear_dots_planes.inl: the same integers,
// the same fp32 operations, the same bits. Fewer than 16 rows go to the register tile.
//   tile_config, tile_zero, tile_load, tile_dot, tile_store, tile_release: linear_ops_amx.inl, or a model of them.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int kPanelTokens = 16;
constexpr int kSetsAtOnce = kTileSets;  // that a call of tiles() serves

template <class Mode>
void amx_tile(const TileCall& call, int set, int sets) {
  constexpr bool kLo = Mode::kPlanes == 2;
  alignas(64) int32_t sums[4][16][16];  // set 0 hi, lo, set 1 hi, lo
  const int64_t width = call.quads * 4, step = least(width, 64), panel_step = sets * 64;
  const uint8_t* panel = call.panel + set * 64;
  const float* fold = call.fold + set * 32;
  const std::byte* x = call.x;
  tile_config(static_cast<int>(step));
  for (int64_t f = 0; f < call.folds; ++f, fold += sets * 32) {
    tile_zero<0>();
    tile_zero<2>();
    if constexpr (kLo) {
      tile_zero<1>();
      tile_zero<3>();
    }
    for (int64_t k = 0; k < width; k += step, x += step, panel += step / 4 * panel_step) {
      tile_load<4>(x, call.ldx);
      tile_load<6>(panel, panel_step);
      tile_load<7>(panel + 64, panel_step);
      tile_dot<0, 4, 6>();
      tile_dot<2, 4, 7>();
      if constexpr (kLo) {
        tile_load<5>(x + call.plane, call.ldx);
        tile_dot<1, 5, 6>();
        tile_dot<3, 5, 7>();
      }
    }
    tile_store<0>(sums[0]);
    tile_store<2>(sums[2]);
    if constexpr (kLo) {
      tile_store<1>(sums[1]);
      tile_store<3>(sums[3]);
    }
    for (int s = 0; s < 2; ++s) {
      const Floats scale = load_floats(fold + s * 32), bias = load_floats(fold + s * 32 + 16);
      for (int t = 0; t < kPanelTokens; ++t) {
        const int64_t i = call.c.at(t, f);
        Ints sum = load_ints(sums[2 * s][t]);
        if constexpr (kLo) sum = add(shift<-8>(sum), load_ints(sums[2 * s + 1][t]));
        if (call.has_zero) sum = add(sum, fill_ints(static_cast<uint32_t>(call.c.init[i])));
        float* out = call.total + t * call.ld_total + (set + s) * kSetRows;
        const Floats factor = Mode::kGroupScale ? mul(scale, fill_floats(call.c.sx[i])) : scale;
        Floats v = fma(factor, to_floats(sum), load_floats(out));
        if (call.has_bias) v = fma(bias, fill_floats(call.c.X[i]), v);
        store_floats(out, v);
      }
    }
  }
}

template <class Mode, int kTokens = kTileTokens>
void vector_tile(const TileCall& call, int tokens, int sets) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return vector_tile<Mode, kTokens - 1>(call, tokens, sets);
  if (sets == kTileSets) tile<Mode, kTokens, kTileSets>(call);
  else tile<Mode, kTokens, 2>(call);
}

template <class Mode, int>
void tiles(const TileCall& call, int tokens, int, int sets) {
  if (tokens == kPanelTokens) {
    for (int s = 0; s < sets; s += 2) amx_tile<Mode>(call, s, sets);
    return;
  }
  TileCall part = call;
  for (int t = 0; t < tokens; t += kTileTokens) {
    part.x = call.x + t * call.ldx;
    part.c = call.c.from(t, 0);
    part.total = call.total + t * call.ld_total;
    vector_tile<Mode>(part, static_cast<int>(least(kTileTokens, tokens - t)), sets);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
