// Panels met by the register tile of linear_dots_planes.inl.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int kPanelTokens = kTileTokens;

template <class Mode, int, int kTokens = kTileTokens>
void tiles(const TileCall& call, int tokens, int sets) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return tiles<Mode, 0, kTokens - 1>(call, tokens, sets);
  if (sets == kTileSets) tile<Mode, kTokens, kTileSets>(call);
  else tile<Mode, kTokens, 2>(call);
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
