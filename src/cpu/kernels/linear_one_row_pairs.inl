// The s16 core's sums for one row of x without VNNI (linear_one_row.inl): the same integers with fewer operations.
//   4 bits  the four nibbles of an int16 lane meet x where they stand: n, 16 n, 256 n under masks, the top one shifted.
//           A unit's sums at a scale stay below 2^31: 256 * 15 * 32512 * 8. They shift down exactly.
namespace hearth::cpu::HEARTH_ISA::matrix {

template <int kBits>
  requires(kBits == 4)
HEARTH_INLINE void add_unit(Ints& s, const uint8_t* unit, const std::byte* x) {
  const __m256i first = _mm256_set1_epi16(0x000f), second = _mm256_set1_epi16(0x00f0),
                third = _mm256_set1_epi16(0x0f00);
  __m256i at16[2], at256[2];
  each<0, 4>([&]<int i>() __attribute__((always_inline)) {
    const std::byte* p = x + i * 2 * S16::kQuadX;
    const __m256i x0 = broadcast(p), x2 = broadcast(p + 4), x1 = broadcast(p + 8), x3 = broadcast(p + 12);
    each<0, 2>([&]<int h>() __attribute__((always_inline)) {
      const __m256i w = load256(unit + i * 64 + h * 32);
      __m256i& sum = h == 0 ? s.a : s.b;
      add_pairs(sum, _mm256_and_si256(w, first), x0);
      add_pairs(sum, _mm256_srli_epi16(w, 12), x3);
      if constexpr (i == 0) {
        at16[h] = _mm256_madd_epi16(_mm256_and_si256(w, second), x1);
        at256[h] = _mm256_madd_epi16(_mm256_and_si256(w, third), x2);
      } else {
        add_pairs(at16[h], _mm256_and_si256(w, second), x1);
        add_pairs(at256[h], _mm256_and_si256(w, third), x2);
      }
    });
  });
  s = add(s, {_mm256_srai_epi32(at16[0], 4), _mm256_srai_epi32(at16[1], 4)});
  s = add(s, {_mm256_srai_epi32(at256[0], 8), _mm256_srai_epi32(at256[1], 8)});
}

static_assert(requires(S16::Sum& s, const uint8_t* unit, const std::byte* x) { add_unit<4>(s, unit, x); });

}  // namespace hearth::cpu::HEARTH_ISA::matrix
