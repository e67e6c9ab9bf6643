// Panels met by the register tile of linear_dots_planes.inl.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int kPanelTokens = kTileTokens;
constexpr int kSetsAtOnce = kTileSets;  // that a call of tiles() serves

template <class Mode, int, int kTokens = kTileTokens>
void tiles(const TileCall& call, int tokens, int, int sets) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return tiles<Mode, 0, kTokens - 1>(call, tokens, 0, sets);
  if (sets == kTileSets) tile<Mode, kTokens, kTileSets>(call);
  else tile<Mode, kTokens, 2>(call);
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
