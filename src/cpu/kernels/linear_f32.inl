// The f32 core: y[m, n] = sum over k ascending of x[m, k] W[n, k], one fp32 FMA chain an output, W decoded exactly.
// Faithful; the chain is the same for every M and instruction set.
//   Up to kPlainRows rows of x plain weights are read in place; otherwise chunks of W are decoded to an fp32 panel
//   [k][sets][16] in L2, met by kTileTokens rows of x at a time, totals in scratch between chunks.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int64_t kPlainRows = 2;
constexpr int64_t kChunkF32 = 256;
static_assert(kChunkF32 * kTileSets * 64 <= kPanelBytes);

template <Plain kType>
HEARTH_INLINE Floats load_plain(const uint8_t* block, int64_t i) {
  if constexpr (kType == Plain::f16) return load_f16(block + 2 * i);
  else if constexpr (kType == Plain::bf16) return load_bf16(block + 2 * i);
  else return load_floats(reinterpret_cast<const float*>(block + 4 * i));
}

template <Plain kType, int kRows>
void plain_block(const Share& a, const uint8_t* block, int64_t m, float* total) {
  Floats sum[kRows][2];
  for (int t = 0; t < kRows; ++t) sum[t][0] = sum[t][1] = fill_floats(0);
  const float* x = a.x + m * a.ldx;
  for (int64_t k = 0; k < a.K; ++k) {
    const Floats w0 = load_plain<kType>(block, k * kBlockRows), w1 = load_plain<kType>(block, k * kBlockRows + 16);
    for (int t = 0; t < kRows; ++t) {
      const Floats v = fill_floats(x[t * a.ldx + k]);
      sum[t][0] = fma(w0, v, sum[t][0]);
      sum[t][1] = fma(w1, v, sum[t][1]);
    }
  }
  for (int t = 0; t < kRows; ++t)
    for (int s = 0; s < 2; ++s) store_floats(total + t * kBlockRows + s * kSetRows, sum[t][s]);
}

template <Plain kType>
void plain_direct(const Share& a) {
  alignas(64) float total[kPlainRows * kBlockRows];
  const int64_t rows = a.m_end - a.m_begin;
  for (int64_t b = a.block_begin; b < a.block_end; ++b) {
    const uint8_t* block = a.blocks + b * a.shape.block_bytes(a.K);
    if (rows == 1) plain_block<kType, 1>(a, block, a.m_begin, total);
    else plain_block<kType, 2>(a, block, a.m_begin, total);
    for (int64_t t = 0; t < rows; ++t)
      finish(a, a.m_begin + t, b * kBlockRows, least(kBlockRows, a.N - b * kBlockRows), total + t * kBlockRows);
  }
}

// Decodes [k, k_end) of a block to columns first, first + 1 of the panel; the definition: s * (q - zero), then + b.
template <int kBits>
void decode(const Share& a, const uint8_t* block, int64_t k, int64_t k_end, int first, int sets, float* panel) {
  const Shape& shape = a.shape;
  const Ints zero = fill_ints(static_cast<uint32_t>(-shape.zero));
  Cells cells(shape, block, k, FetchAhead{});  // bound by its arithmetic
  for (; cells.k < k_end; cells.next(), panel += shape.span() * sets * 16) {
    cells.enter();
    for (int set = 0; set < 2; ++set) {
      float* to = panel + (first + set) * 16;
      const uint8_t* unit = cells.set(set);
      for (int u = 0; u < shape.units(); ++u, unit += kBits * 64) {
        ScaleBias sb = scale_bias(cells, set, 0);
        each<0, 8>([&]<int Q>() __attribute__((always_inline)) {
          if (Q == 4 && shape.subs() == 2) sb = scale_bias(cells, set, 1);
          const Ints w = quad<kBits, Q>(unit);
          each<0, 4>([&]<int kByte>() __attribute__((always_inline)) {
            Floats v = mul(sb.scale, to_floats(add(mask(shift<8 * kByte>(w), 255), zero)));
            if (shape.has_bias) v = add(v, sb.bias);
            store_floats(to, v);
            to += sets * 16;
          });
        });
      }
    }
  }
}

template <Plain kType>
void widen(const uint8_t* block, int64_t k, int64_t k_end, int first, int sets, float* panel) {
  for (; k < k_end; ++k, panel += sets * 16)
    for (int set = 0; set < 2; ++set)
      store_floats(panel + (first + set) * 16, load_plain<kType>(block, k * kBlockRows + set * kSetRows));
}

inline void decode_chunk(const Share& a, const uint8_t* block, int64_t k, int64_t k_end, int first, int sets,
                         float* panel) {
  switch (a.shape.plain) {
    case Plain::f32: return widen<Plain::f32>(block, k, k_end, first, sets, panel);
    case Plain::f16: return widen<Plain::f16>(block, k, k_end, first, sets, panel);
    case Plain::bf16: return widen<Plain::bf16>(block, k, k_end, first, sets, panel);
    case Plain::no: break;
  }
  switch (a.shape.bits) {
    case 2: return decode<2>(a, block, k, k_end, first, sets, panel);
    case 3: return decode<3>(a, block, k, k_end, first, sets, panel);
    case 4: return decode<4>(a, block, k, k_end, first, sets, panel);
    case 5: return decode<5>(a, block, k, k_end, first, sets, panel);
    case 6: return decode<6>(a, block, k, k_end, first, sets, panel);
    default: return decode<8>(a, block, k, k_end, first, sets, panel);
  }
}

// total[t][kSets * 16] of columns [first, first + kSets) of the panel.
template <int kTokens, int kSets>
__attribute__((noinline)) void tile_f32(const float* panel, int64_t stride, int64_t depth, const float* x, int64_t ldx,
                                        float* total, int64_t ld_total) {
  Floats sum[kTokens][kSets];
  const auto cells = [](auto&& g) __attribute__((always_inline)) {
    each<0, kTokens>([&]<int t>() __attribute__((always_inline)) {
      each<0, kSets>([&]<int s>() __attribute__((always_inline)) { g.template operator()<t, s>(); });
    });
  };
  cells([&]<int t, int s>() __attribute__((always_inline)) { sum[t][s] = load_floats(total + t * ld_total + s * 16); });
#pragma GCC unroll 1
  for (int64_t k = 0; k < depth; ++k, panel += stride) {
    Floats w[kSets];
    each<0, kSets>([&]<int s>() __attribute__((always_inline)) { w[s] = load_floats(panel + s * 16); });
    cells([&]<int t, int s>()
              __attribute__((always_inline)) { fma_in_place(sum[t][s], w[s], fill_floats(x[t * ldx + k])); });
  }
  cells([&]<int t, int s>() __attribute__((always_inline)) { pin(sum[t][s]); });
  cells([&]<int t, int s>() __attribute__((always_inline)) { store_floats(total + t * ld_total + s * 16, sum[t][s]); });
}

// As many sets at once as the registers hold: kTileF32Sets beside kTileTokens rows, twice as many beside few.
template <int kTokens = kTileTokens>
void tiles_f32(int tokens, const float* panel, int sets, int64_t depth, const float* x, int64_t ldx, float* total) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return tiles_f32<kTokens - 1>(tokens, panel, sets, depth, x, ldx, total);
  constexpr int kMany = kTokens * 2 <= kTileTokens ? 2 * kTileF32Sets : kTileF32Sets, kFew = kTileF32Sets < 2 ? 1 : 2;
  const int64_t columns = sets * kSetRows;
  int s = 0;
  for (; s + kMany <= sets; s += kMany)
    tile_f32<kTokens, kMany>(panel + s * 16, columns, depth, x, ldx, total + s * 16, columns);
  for (; s < sets; s += kFew) tile_f32<kTokens, kFew>(panel + s * 16, columns, depth, x, ldx, total + s * 16, columns);
}

inline void panels_f32(const Share& a, const Scratch& s, int64_t m, int64_t rows) {
  float* panel = reinterpret_cast<float*>(s.panel);
  const int64_t block_bytes = a.shape.block_bytes(a.K);
  for (int64_t b = a.block_begin; b < a.block_end;) {
    const int sets = b + kTileSets / 2 <= a.block_end ? kTileSets : 2;
    const int64_t columns = sets * kSetRows;
    __builtin_memset(s.total, 0, static_cast<size_t>(rows * columns * 4));
    for (int64_t k = 0; k < a.K; k += kChunkF32) {
      const int64_t k_end = least(k + kChunkF32, a.K);
      for (int i = 0; i < sets / 2; ++i)
        decode_chunk(a, a.blocks + (b + i) * block_bytes, k, k_end, 2 * i, sets, panel);
      for (int64_t t = 0; t < rows; t += kTileTokens) {
        const float* x = a.x + (m + t) * a.ldx + k;
        float* total = s.total + t * columns;
        tiles_f32(static_cast<int>(least(kTileTokens, rows - t)), panel, sets, k_end - k, x, a.ldx, total);
      }
    }
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t n = b * kBlockRows, i = 0; i < columns; i += kBlockRows)
        finish(a, m + t, n + i, least(kBlockRows, a.N - n - i), s.total + t * columns + i);
    b += sets / 2;
  }
}

inline void f32_share(const Share& a) {
  const int64_t rows = a.m_end - a.m_begin;
  if (rows <= kPlainRows) switch (a.shape.plain) {
      case Plain::f32: return plain_direct<Plain::f32>(a);
      case Plain::f16: return plain_direct<Plain::f16>(a);
      case Plain::bf16: return plain_direct<Plain::bf16>(a);
      case Plain::no: break;
    }
  const Scratch s = scratch_of(a);
  const int64_t token_blocks = (rows + kTokenBlock - 1) / kTokenBlock;
  for (int64_t i = 0; i < token_blocks; ++i) {
    const int64_t m = a.m_begin + rows * i / token_blocks;
    panels_f32(a, s, m, a.m_begin + rows * (i + 1) / token_blocks - m);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
