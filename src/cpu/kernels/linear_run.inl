// A share of a product to the kernel of its core and format.
namespace hearth::cpu::HEARTH_ISA::matrix {

template <class Mode, int kBits, bool kHalf>
void integer_share(const Share& a) {
  const Scratch s = scratch_of(a);
  const int64_t rows = a.m_end - a.m_begin, width = fold_width<Mode>(a.shape);
  if (rows > kDirectRows) return panel_share<Mode, kBits, kHalf>(a, s, width);
  direct<Mode, kBits, kHalf>(a, make_constants(a, s, a.m_begin, rows, width));
}

template <template <int> class Mode>
void integer_core(const Share& a) {
  const bool half = a.shape.group < kUnit;
  switch (a.shape.bits) {
    case 2: return half ? integer_share<Mode<2>, 2, true>(a) : integer_share<Mode<2>, 2, false>(a);
    case 3: return half ? integer_share<Mode<3>, 3, true>(a) : integer_share<Mode<3>, 3, false>(a);
    case 4: return integer_share<Mode<4>, 4, false>(a);
    case 5: return integer_share<Mode<5>, 5, false>(a);
    case 6: return half ? integer_share<Mode<6>, 6, true>(a) : integer_share<Mode<6>, 6, false>(a);
    default: return integer_share<Mode<8>, 8, false>(a);
  }
}

template <int>
using S16OfBits = S16;

inline void run(const Share& a) noexcept {
  switch (a.core) {
    case Core::f32: return f32_share(a);
    case Core::s16: return integer_core<S16OfBits>(a);
    case Core::s8: return integer_core<S8>(a);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
