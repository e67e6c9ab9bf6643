// Tile registers by name. Tiles 0-3: sums [16][16] int32; 4, 5: x [16][step] bytes; 6, 7: weights [step / 4][16]
// dwords.
namespace hearth::cpu::HEARTH_ISA::matrix {

// LDTILECFG, palette 1; `step` bytes of x a dot: 16, 32 or 64.
inline void tile_config(int step) {
  alignas(64) struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {};
  static_assert(sizeof config == 64);
  config.palette = 1;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? step : 64);
    config.rows[i] = static_cast<uint8_t>(i >= 6 ? step / 4 : 16);
  }
  asm volatile("ldtilecfg %0" ::"m"(config));
}
HEARTH_INLINE void tile_release() { asm volatile("tilerelease" ::); }

template <int kTile>
HEARTH_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
HEARTH_INLINE void tile_load(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HEARTH_INLINE void tile_store(int32_t (*p)[16]) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(int64_t{64}), "i"(kTile) : "memory");
}
// tmm[kSum] += signed bytes of tmm[kX] times unsigned bytes of tmm[kW].
template <int kSum, int kX, int kW>
HEARTH_INLINE void tile_dot() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kX), "i"(kW));
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
