// Integer cores for many rows of x: chunks of K are unpacked once into a panel in L2 and met by all rows of a token
// block, kPanelTokens at a time. Totals of the block stay in scratch between chunks, so the folds run in the same order
// as in linear_direct.inl: the same bits.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr int64_t kChunk = 512;  // k values of a panel; a multiple of 256 (K-quants) and of 128 (groups)
static_assert(kChunk / 4 * S16::kQuadBytes * kTileSets <= kPanelBytes);
static_assert(kChunk / 16 * kTileSets * 32 * 4 <= kFoldBytes);
static_assert(kTileSets * kSetRows * 4 * kTokenBlock <= kTotalBytes);

struct Scratch {
  uint8_t* panel;
  float *fold, *total;
  int32_t* init;
  float *X, *sx;
};
HEARTH_INLINE Scratch scratch_of(const Share& a) {
  std::byte* p = a.scratch;
  const auto take = [&p](int64_t bytes) __attribute__((always_inline)) {
    std::byte* at = p;
    p += bytes;
    return at;
  };
  Scratch s;
  s.panel = reinterpret_cast<uint8_t*>(take(kPanelBytes));
  s.fold = reinterpret_cast<float*>(take(kFoldBytes));
  s.total = reinterpret_cast<float*>(take(kTotalBytes));
  const int64_t constants = least(a.m_end - a.m_begin, kTokenBlock) * aligned64((a.K / 16 + 1) * 4);
  s.init = reinterpret_cast<int32_t*>(take(constants));
  s.X = reinterpret_cast<float*>(take(constants));
  s.sx = reinterpret_cast<float*>(take(constants));
  return s;
}

// The constants of rows [m, m + rows) of x for folds of `width` values.
inline Constants make_constants(const Share& a, const Scratch& s, int64_t m, int64_t rows, int64_t width) {
  const int64_t folds = a.K / width, per = width / 16;
  for (int64_t t = 0; t < rows; ++t) {
    const std::byte* row = a.act + (m + t) * a.layout.row;
    const int32_t* sums = reinterpret_cast<const int32_t*>(row + a.layout.sums);
    const float* scales = reinterpret_cast<const float*>(row + a.layout.scales);
    for (int64_t f = 0; f < folds; ++f) {
      int32_t X = 0;
      for (int64_t i = 0; i < per; ++i) X += sums[f * per + i];
      const float sx = a.core == Core::s8 ? scales[f * width / 32] : 1;
      const int64_t i = f * rows + t;
      s.init[i] = -a.shape.zero * X;
      s.X[i] = sx * static_cast<float>(X);
      s.sx[i] = sx;
    }
  }
  return {s.init, s.X, s.sx, rows};
}

// Chunk [k, k_end) of the block's two sets to sets first, first + 1 of a panel of `sets`.
template <class Mode, int kBits, bool kHalf>
void unpack(const Share& a, const uint8_t* block, int64_t k, int64_t k_end, int first, int sets, const Scratch& s) {
  const int units = a.shape.units(), parts = kHalf ? 2 : Mode::kGroupScale ? units : 1;
  const int64_t quads = quad_stride<Mode>(sets);
  Cells cells(a.shape, block, k, a.ahead);
  uint8_t* out = s.panel;
  float* fold = s.fold;
  for (; cells.k < k_end; cells.next(), out += units * 8 * quads, fold += parts * sets * 32) {
    cells.enter();
    for (int set = 0; set < 2; ++set) {
      const int column = first + set;
      uint8_t* to = out + column * set_stride<Mode>(k_end - k);
      const uint8_t* unit = cells.set(set);
      for (int u = 0; u < units; ++u, unit += kBits * 64, to += 8 * quads)
        each<0, 8>([&]<int Q>() __attribute__((always_inline)) {
          store_quad<Mode>(to + Q * quads, Mode::template prepare<kBits, Q>(unit));
        });
      for (int p = 0; p < parts; ++p) {
        const ScaleBias sb = scale_bias(cells, set, kHalf ? p : 0);
        store_floats(fold + (p * sets + column) * 32, sb.scale);
        store_floats(fold + (p * sets + column) * 32 + 16, sb.bias);
      }
    }
  }
}

template <class Mode, int kBits, bool kHalf>
void panels(const Share& a, const Scratch& s, int64_t m, int64_t rows, int64_t width, const Constants& c) {
  const int64_t block_bytes = a.shape.block_bytes(a.K), plane = a.layout.plane;
  const bool has_bias = a.shape.has_bias, has_zero = a.shape.zero != 0;
  for (int64_t b = a.block_begin; b < a.block_end;) {
    const int sets = b + kTileSets / 2 <= a.block_end ? kTileSets : 2;
    const int64_t columns = sets * kSetRows;
    __builtin_memset(s.total, 0, static_cast<size_t>(rows * columns * 4));
    for (int64_t k = 0; k < a.K; k += kChunk) {
      const int64_t k_end = least(k + kChunk, a.K);
      for (int i = 0; i < sets / 2; ++i)
        unpack<Mode, kBits, kHalf>(a, a.blocks + (b + i) * block_bytes, k, k_end, 2 * i, sets, s);
      for (int set = 0; set < sets; set += kSetsAtOnce)
        for (int64_t t = 0; t < rows; t += kPanelTokens) {
          const TileCall call{.panel = s.panel,
                              .fold = s.fold,
                              .folds = (k_end - k) / width,
                              .quads = width / 4,
                              .x = Mode::data(a, m + t) + k / 4 * Mode::kQuadX,
                              .ldx = a.layout.row,
                              .plane = plane,
                              .c = c.from(t, k / width),
                              .has_bias = has_bias,
                              .has_zero = has_zero,
                              .total = s.total + t * columns,
                              .ld_total = columns};
          tiles<Mode, kBits>(call, static_cast<int>(least(kPanelTokens, rows - t)), set, sets);
        }
    }
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t n = b * kBlockRows, i = 0; i < columns; i += kBlockRows)
        finish(a, m + t, n + i, least(kBlockRows, a.N - n - i), s.total + t * columns + i);
    b += sets / 2;
  }
}

// All rows of a share, a token block after the other.
template <class Mode, int kBits, bool kHalf>
void panel_share(const Share& a, const Scratch& s, int64_t width) {
  const int64_t rows = a.m_end - a.m_begin, token_blocks = (rows + kTokenBlock - 1) / kTokenBlock;
  for (int64_t i = 0; i < token_blocks; ++i) {
    const int64_t m = a.m_begin + rows * i / token_blocks, end = a.m_begin + rows * (i + 1) / token_blocks;
    panels<Mode, kBits, kHalf>(a, s, m, end - m, width, make_constants(a, s, m, end - m, width));
  }
}

// Values of K that a fold sums.
template <class Mode>
HEARTH_INLINE int64_t fold_width(const Shape& shape) {
  return Mode::kGroupScale ? least(shape.group, kUnit) : shape.group;
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
