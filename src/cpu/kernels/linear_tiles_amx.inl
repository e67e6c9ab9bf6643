// Panels met by AMX: 16 rows of x times a set, signed planes of x (tile rows: tokens) times unsigned quads of the panel
// (tile rows: quads, a dword for each row of W) in TDPBSUD. A fold is one dot of up to 64 values, or two for groups of
// 128; hi and lo planes sum apart and are joined in the fold, which is that of linear_dots_planes.inl: the same
// integers, the same fp32 operations, the same bits. Fewer than 16 rows go to the register tile.
//   tile_config, tile_zero, tile_load, tile_dot, tile_store, tile_release: linear_ops_amx.inl, or a model of them.
// Folding costs more than the dots: by count a group of 32 is 32 cycles of tiles (two planes) and some 45 of vectors.
// Loads of what a tile has just stored wait until it is in L1, so dots run kAhead folds ahead of the vectors; totals
// stay in registers.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int kPanelTokens = 16;
constexpr int kSetsAtOnce = kTileSets;          // that a call of tiles() serves
constexpr int kAhead = 2, kSlots = 2 * kAhead;  // folds
static_assert(kAhead % 2 == 0 && kSlots % 2 == 0 && kSlots >= kAhead);

// The dots of one fold to sums[hi, lo][tokens][16]; tiles of even and odd folds do not wait for each other.
template <bool kLo, int kOdd>
HEARTH_INLINE void amx_dots(int32_t (*sums)[16][16], const std::byte* x, int64_t ldx, int64_t plane,
                            const uint8_t* panel, int64_t panel_step, int64_t width, int64_t step) {
  tile_zero<2 * kOdd>();
  if constexpr (kLo) tile_zero<2 * kOdd + 1>();
  for (int64_t k = 0; k < width; k += step, panel += step / 4 * panel_step) {
    tile_load<6 + kOdd>(panel, panel_step);
    tile_load<4>(x + k, ldx);
    tile_dot<2 * kOdd, 4, 6 + kOdd>();
    if constexpr (kLo) {
      tile_load<5>(x + k + plane, ldx);
      tile_dot<2 * kOdd + 1, 5, 6 + kOdd>();
    }
  }
  tile_store<2 * kOdd>(sums[0]);
  if constexpr (kLo) tile_store<2 * kOdd + 1>(sums[1]);
}

// Bytes of x in a dot: what tile_config() must have been told.
HEARTH_INLINE int64_t amx_step(int64_t width) { return least(width, 64); }

template <class Mode, bool kBias, bool kZero>
void amx_tile(const TileCall& call, int set, int sets) {
  constexpr bool kLo = Mode::kPlanes == 2;
  alignas(64) int32_t sums[kSlots][2][16][16];  // [fold % kSlots][hi, lo]
  const int64_t width = call.quads * 4, step = amx_step(width), panel_step = sets * 64;
  const int64_t folds = call.folds, ldx = call.ldx, plane = call.plane;
  float* const out = call.total + set * kSetRows;
  const auto tokens = [](auto&& g) __attribute__((always_inline)) { each<0, kPanelTokens>(g); };
  Floats total[kPanelTokens];
  tokens([&]<int t>() __attribute__((always_inline)) { total[t] = load_floats(out + t * call.ld_total); });
  const auto dots = [&]<int kOdd>(int64_t f) __attribute__((always_inline)) {
    if (f < folds)
      amx_dots<kLo, kOdd>(sums[f % kSlots], call.x + f * width, ldx, plane,
                          call.panel + set * 64 + f * call.quads * panel_step, panel_step, width, step);
  };
  const auto fold = [&](int64_t f) __attribute__((always_inline)) {
    const float* scales = call.fold + f * sets * 32 + set * 32;
    const Floats scale = load_floats(scales), bias = load_floats(scales + 16);
    const int64_t at = call.c.at(0, f);
    const auto* sum_of_fold = sums[f % kSlots];
    tokens([&]<int t>() __attribute__((always_inline)) {
      Ints sum = load_ints(sum_of_fold[0][t]);
      if constexpr (kLo) sum = add(shift<-8>(sum), load_ints(sum_of_fold[1][t]));
      if constexpr (kZero) sum = add(sum, fill_ints(static_cast<uint32_t>(call.c.init[at + t])));
      const Floats factor = Mode::kGroupScale ? mul(scale, fill_floats(call.c.sx[at + t])) : scale;
      total[t] = fma(factor, to_floats(sum), total[t]);
      if constexpr (kBias) total[t] = fma(bias, fill_floats(call.c.X[at + t]), total[t]);
    });
  };
  for (int64_t f = 0; f < kAhead; f += 2) {
    dots.template operator()<0>(f);
    dots.template operator()<1>(f + 1);
  }
  for (int64_t f = 0; f < folds; f += 2) {
    fold(f);
    dots.template operator()<0>(f + kAhead);
    if (f + 1 < folds) fold(f + 1);
    dots.template operator()<1>(f + kAhead + 1);
  }
  tokens([&]<int t>() __attribute__((always_inline)) { store_floats(out + t * call.ld_total, total[t]); });
}

template <class Mode>
void amx_tiles(const TileCall& call, int sets) {
  const auto tile = call.has_zero   ? &amx_tile<Mode, false, true>
                    : call.has_bias ? &amx_tile<Mode, true, false>
                                    : &amx_tile<Mode, false, false>;
  for (int s = 0; s < sets; ++s) tile(call, s, sets);
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
  if (tokens == kPanelTokens) return amx_tiles<Mode>(call, sets);
  TileCall part = call;
  for (int t = 0; t < tokens; t += kTileTokens) {
    part.x = call.x + t * call.ldx;
    part.c = call.c.from(t, 0);
    part.total = call.total + t * call.ld_total;
    vector_tile<Mode>(part, static_cast<int>(least(kTileTokens, tokens - t)), sets);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
