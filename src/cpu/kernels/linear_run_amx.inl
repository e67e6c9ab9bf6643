// Integer cores with at least a tile of rows of x run in AMX, all else in the AVX-512 kernels: the same bits.
namespace hearth::cpu::HEARTH_ISA::matrix {

template <template <int> class Mode>
void tile_core(const Share& a) {
  const Scratch s = scratch_of(a);
  const int64_t width = fold_width<Mode<8>>(a.shape);
  const bool half = a.shape.group < kUnit;
  tile_config(static_cast<int>(amx_step(width)));
  switch (a.shape.bits) {
    case 2: half ? panel_share<Mode<2>, 2, true>(a, s, width) : panel_share<Mode<2>, 2, false>(a, s, width); break;
    case 3: half ? panel_share<Mode<3>, 3, true>(a, s, width) : panel_share<Mode<3>, 3, false>(a, s, width); break;
    case 4: panel_share<Mode<4>, 4, false>(a, s, width); break;
    case 5: panel_share<Mode<5>, 5, false>(a, s, width); break;
    case 6: half ? panel_share<Mode<6>, 6, true>(a, s, width) : panel_share<Mode<6>, 6, false>(a, s, width); break;
    default: panel_share<Mode<8>, 8, false>(a, s, width);
  }
  tile_release();
}

template <int>
using S16OfBits = S16;

inline void run(const Share& a) noexcept {
  if (a.core == Core::f32 || a.m_end - a.m_begin < kPanelTokens) return kLinearAvx512.run(a);
  if (a.core == Core::s16) return tile_core<S16OfBits>(a);
  tile_core<S8>(a);
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
