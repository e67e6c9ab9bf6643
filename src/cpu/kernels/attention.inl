// Attention of query rows over one chunk of 256 positions, as unnormalised partials that merge ascending (DESIGN 7).
//   z_j = scale (q . k_j), with a cap z = cap tanh(z / cap);  top = max over visible j of z_j;
//   p_j = e^(z_j - top);  total = sum p_j;  out = sum p_j v_j
// Canonical orders, whatever the number of rows, tiles or members and whatever the instruction set:
//   q . k   one fma chain, d ascending          total  16 chains (j mod 16), j ascending, then the tree of reduce_add
//   out     one fma chain for each d, j ascending; masked j have p = 0 and change nothing
//   merge   chunks ascending: out = out a + chunk b, a = e^(top - new), b = e^(chunk top - new)
// Both products are [rows, k] x [k, n] with register tiles of kTileRows rows. bf16 keys lie as pairs (graph/kv.h) and
// are widened in registers. Others are decoded once for all rows into fp32 scratch: K transposed to [Dh, 64], V as
// [64, Dh]; so are bf16 values of many rows and those of heads that no Vec divides.
namespace hearth::cpu::HEARTH_ISA {

// sum[r, v] += a[r] right[v], the column a of a tile.
template <int R, int V>
HEARTH_INLINE void add_column(Vec (&sum)[R][V], const float* a, int64_t lda, const Vec (&right)[V]) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v)
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[r][v] = fma(fill(a[r * lda]), right[v], sum[r][v]);
}

// Asks for what the product after this one reads, a little at a time: a tile lies far from the one before it, and the
// hardware takes a while to see that it is walked in order.
template <int kBytes>
HEARTH_INLINE void fetch(const std::byte* p) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// The right sides: add() takes k = 0 .. K - 1, ascending, of A[r, k] B[k, n ..) into a register tile.
struct FloatRows {
  const float* p;
  int64_t ld;
  template <int R, int V>
  HEARTH_INLINE void add(Vec (&sum)[R][V], const float* a, int64_t lda, int64_t K, int64_t n) const {
    for (int64_t k = 0; k < K; ++k) {
      Vec right[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) right[v] = load(p + k * ld + n + v * 16);
      add_column(sum, a + k, lda, right);
    }
  }
};

struct Bf16Rows {
  const uint16_t* p;
  int64_t ld;
  const std::byte* next;
  template <int R, int V>
  HEARTH_INLINE void add(Vec (&sum)[R][V], const float* a, int64_t lda, int64_t K, int64_t n) const {
    for (int64_t k = 0; k < K; ++k) {
      Vec right[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) right[v] = load_bf16(p + k * ld + n + v * 16);
      if (next) fetch<V * 32>(next + (k * ld + n) * 2);
      add_column(sum, a + k, lda, right);
    }
  }
};

// bf16 keys, [K / 2, 64, 2].
struct KeyPairs {
  const std::byte *p, *next;
  template <int R, int V>
  HEARTH_INLINE void add(Vec (&sum)[R][V], const float* a, int64_t lda, int64_t K, int64_t n) const {
    const IVec upper = ifill(static_cast<int32_t>(0xffff0000u));
    const float* at = reinterpret_cast<const float*>(p) + n;
    for (int64_t k = 0; k < K; k += 2, at += kTilePositions) {
      Vec even[V], odd[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const IVec pair = bits(load(at + v * 16));
        even[v] = floats(shift_left<16>(pair));
        odd[v] = floats(pair & upper);
      }
      if (next) fetch<V * 64>(next + (k / 2 * kTilePositions + n) * 4);
      add_column(sum, a + k, lda, even);
      add_column(sum, a + k + 1, lda, odd);
    }
  }
};

// One register tile: C[r, n] = (add ? C : 0) + A[r, .] B[., n], R rows, V Vecs wide from column n on.
template <int R, int V, class Right>
HEARTH_INLINE void product_tile(const float* a, int64_t lda, const Right& b, int64_t n, float* c, int64_t ldc,
                                int64_t K, bool add) {
  Vec sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = add ? load(c + r * ldc + n + v * 16) : zero();
  b.add(sum, a, lda, K, n);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(c + r * ldc + n + v * 16, sum[r][v]);
}

// Columns from n on: tiles of V Vecs, then what is left in narrower ones.
template <int R, int V, class Right>
inline void product_columns(const float* a, int64_t lda, const Right& b, int64_t n, float* c, int64_t ldc, int64_t K,
                            int64_t N, bool add) {
  for (; n + V * 16 <= N; n += V * 16) product_tile<R, V>(a, lda, b, n, c, ldc, K, add);
  if constexpr (V > 1)
    if (n < N) product_columns<R, V / 2>(a, lda, b, n, c, ldc, K, N, add);
}

// Few rows take wider tiles, so that enough chains run at once.
template <int R, class Right>
inline void product_rows(const float* a, int64_t lda, const Right& b, float* c, int64_t ldc, int64_t K, int64_t N,
                         bool add) {
  constexpr int kWide = static_cast<int>(kTileVecs) * (R == 1 ? 4 : R <= 3 ? 2 : 1);
  product_columns<R, kWide>(a, lda, b, 0, c, ldc, K, N, add);
}

// The last rows, fewer than a register tile has.
template <int R, class Right>
inline void product_rest(const float* a, int64_t lda, const Right& b, float* c, int64_t ldc, int64_t rows, int64_t K,
                         int64_t N, bool add) {
  if constexpr (R > 0) {
    if (rows == R) product_rows<R>(a, lda, b, c, ldc, K, N, add);
    else product_rest<R - 1>(a, lda, b, c, ldc, rows, K, N, add);
  }
}

// C [rows, N] (+)= A [rows, K] B [K, N]; N a multiple of 16.
template <class Right>
inline void product(const float* a, int64_t lda, const Right& b, float* c, int64_t ldc, int64_t rows, int64_t K,
                    int64_t N, bool add) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows)
    product_rows<kTileRows>(a + r * lda, lda, b, c + r * ldc, ldc, K, N, add);
  product_rest<kTileRows - 1>(a + r * lda, lda, b, c + r * ldc, ldc, rows - r, K, N, add);
}

// Values d .. d + 15 of row j of a tile, fp32; lanes beyond Dh are zero. Quantized: s * q + b, two roundings.
HEARTH_INLINE Vec tile_values(const KvTile& tile, graph::KvFormat format, int64_t Dh, int64_t j, int64_t d) {
  const int64_t left = Dh - d;
  switch (format) {
    case graph::KvFormat::f32: {
      const float* p = reinterpret_cast<const float*>(tile.data) + j * tile.stride + d;
      return left >= 16 ? load(p) : load_part(p, left);
    }
    case graph::KvFormat::bf16: {
      const uint16_t* p = reinterpret_cast<const uint16_t*>(tile.data) + j * tile.stride + d;
      if (left >= 16) return load_bf16(p);
      uint16_t part[16] = {};
      for (int64_t i = 0; i < left; ++i) part[i] = p[i];
      return load_bf16(part);
    }
    case graph::KvFormat::q8:
    case graph::KvFormat::q4: break;
  }
  const int64_t at = j * tile.stride + d, group = j * (tile.stride / graph::kKvGroup) + d / graph::kKvGroup;
  const Vec s = fill(hearth::to_float(bf16{tile.scales[group]})), b = fill(hearth::to_float(bf16{tile.biases[group]}));
  const uint8_t* p = reinterpret_cast<const uint8_t*>(tile.data);
  return (format == graph::KvFormat::q8 ? load_u8(p + at) : load_u4(p + at / 2)) * s + b;
}

// out [Dh rounded up to 16][64]: rows of the tile as columns; those from n on are zero or left as they were.
inline void load_transposed(const KvTile& tile, graph::KvFormat format, int64_t Dh, int64_t n, float* out) {
  for (int64_t j = 0; j < n; j += 16)
    for (int64_t d = 0; d < Dh; d += 16) {
      Vec r[16];
      for (int64_t i = 0; i < 16; ++i) r[i] = j + i < n ? tile_values(tile, format, Dh, j + i, d) : zero();
      transpose(r);
      for (int64_t i = 0; i < 16; ++i) store(out + (d + i) * 64 + j, r[i]);
    }
}

// out [n][ld], rows first .. n - 1 only; ld = Dh rounded up to 16.
inline void load_rows(const KvTile& tile, graph::KvFormat format, int64_t Dh, int64_t first, int64_t n, int64_t ld,
                      float* out) {
  for (int64_t j = first; j < n; ++j)
    for (int64_t d = 0; d < Dh; d += 16) store(out + j * ld + d, tile_values(tile, format, Dh, j, d));
}

// z [256] of one row -> p in place over Vecs [begin, end); positions outside [low, high) get p = 0.
inline void softmax_row(float* z, int64_t begin, int64_t end, int32_t low, int32_t high, float scale, float cap,
                        float& top, float& total) {
  const Vec factor = fill(scale), limit = fill(cap);
  const IVec above_low = ifill(low - 1), at_high = ifill(high);
  Vec best = fill(-__builtin_inff());
  for (int64_t i = begin; i < end; ++i) {
    Vec x = load(z + i * 16) * factor;
    if (cap > 0) x = limit * tanh(x / limit);
    const IVec at = lane_numbers() + ifill(static_cast<int32_t>(i * 16));
    x = select(greater(at, above_low), select(greater(at_high, at), x, fill(-__builtin_inff())),
               fill(-__builtin_inff()));
    store(z + i * 16, x);
    best = max(best, x);
  }
  top = reduce_max(best);
  const Vec base = fill(top == -__builtin_inff() ? 0.0f : top);
  Vec sum = zero();
  for (int64_t i = begin; i < end; ++i) {
    const Vec p = exp(load(z + i * 16) - base);
    store(z + i * 16, p);
    sum = sum + p;
  }
  total = reduce_add(sum);
}

constexpr int64_t kWidenRows = 2 * kTileRows;  // up to here each register tile widens bf16 values anew

inline void attend_chunk(const AttendChunk& c) noexcept {
  const int64_t ld = (c.Dh + 15) / 16 * 16;
  int64_t first = 256, last = 0;
  for (int64_t r = 0; r < c.rows; ++r) {
    if (c.low[r] >= c.high[r]) continue;
    first = c.low[r] < first ? c.low[r] : first;
    last = c.high[r] > last ? c.high[r] : last;
  }
  if (first >= last) {  // nothing of this chunk is visible
    for (int64_t r = 0; r < c.rows; ++r) {
      c.top[r] = -__builtin_inff();
      c.total[r] = 0;
      for (int64_t d = 0; d < ld; d += 16) store(c.out + r * ld + d, zero());
    }
    return;
  }
  const bool ahead = c.fetch && c.rows <= kWidenRows;  // else a tile is met by many rows
  for (int64_t t = first / 64; t * 64 < last; ++t) {
    const int64_t n = last - t * 64 < 64 ? last - t * 64 : 64, N = (n + 15) / 16 * 16;
    if (c.format == graph::KvFormat::bf16) {
      const bool more_keys = (t + 1) * 64 < last;
      const std::byte* next = more_keys ? c.keys[t + 1].data : N == 64 ? c.values[first / 64].data : nullptr;
      product(c.q, c.ldq, KeyPairs{c.keys[t].data, ahead ? next : nullptr}, c.z + t * 64, 256, c.rows, c.Dh, N, false);
    } else {
      load_transposed(c.keys[t], c.format, c.Dh, n, c.tile);
      product(c.q, c.ldq, FloatRows{c.tile, 64}, c.z + t * 64, 256, c.rows, c.Dh, N, false);
    }
  }
  for (int64_t r = 0; r < c.rows; ++r)
    softmax_row(c.z + r * 256, first / 64 * 4, (last + 15) / 16, c.low[r], c.high[r], c.scale, c.cap, c.top[r],
                c.total[r]);
  for (int64_t t = first / 64; t * 64 < last; ++t) {
    const int64_t begin = first > t * 64 ? first - t * 64 : 0, end = last - t * 64 < 64 ? last - t * 64 : 64;
    const float* p = c.z + t * 64 + begin;
    const bool more = t > first / 64;
    if (c.format == graph::KvFormat::bf16 && c.rows <= kWidenRows && c.Dh % 16 == 0) {
      const auto* values = reinterpret_cast<const uint16_t*>(c.values[t].data);
      const std::byte* next = ahead && (t + 1) * 64 < last ? c.values[t + 1].data : nullptr;
      product(p, 256, Bf16Rows{values + begin * c.values[t].stride, c.values[t].stride, next}, c.out, ld, c.rows,
              end - begin, ld, more);
    } else {
      load_rows(c.values[t], c.format, c.Dh, begin, end, ld, c.tile);
      product(p, 256, FloatRows{c.tile + begin * ld, ld}, c.out, ld, c.rows, end - begin, ld, more);
    }
  }
}

// (top, total, out) of a row takes a chunk's partial in.
inline void merge_chunk(const float* chunk_out, float chunk_top, float chunk_total, float* out, float& top,
                        float& total, int64_t Dh) noexcept {
  const float highest = chunk_top > top ? chunk_top : top;
  const float base = highest == -__builtin_inff() ? 0.0f : highest;
  alignas(64) float w[16] = {};
  w[0] = top - base;
  w[1] = chunk_top - base;
  store(w, exp(load(w)));
  const Vec a = fill(w[0]), b = fill(w[1]);
  top = highest;
  total = __builtin_fmaf(chunk_total, w[1], total * w[0]);
  for (int64_t d = 0; d < Dh; d += 16) store(out + d, fma(load(chunk_out + d), b, load(out + d) * a));
}

// y [Dh] = r(out / total); a row that sees nothing gives zeros.
inline void finish_row(const float* out, float total, float* y, int64_t Dh, DType r) noexcept {
  const Vec divisor = fill(total == 0.0f ? 1.0f : total);
  int64_t d = 0;
  for (; d + 16 <= Dh; d += 16) store(y + d, round_to(r, load(out + d) / divisor));
  if (d < Dh) store_part(y + d, round_to(r, load(out + d) / divisor), Dh - d);
}

inline void store_bf16_row(const float* x, uint16_t* y, int64_t n) noexcept {
  int64_t d = 0;
  for (; d + 16 <= n; d += 16) store_bf16(y + d, load(x + d));
  for (; d < n; ++d) y[d] = hearth::to_bf16(x[d]).bits;
}

// A key of a block of pairs: x [n], n even; y: of the position, kTilePositions pairs apart.
inline void store_bf16_key(const float* x, uint32_t* y, int64_t n) noexcept {
  uint16_t row[16];
  for (int64_t d = 0; d < n; d += 16) {
    const int64_t some = n - d < 16 ? n - d : 16;
    store_bf16_row(x + d, row, some);
    for (int64_t i = 0; i < some; i += 2) y[(d + i) / 2 * kTilePositions] = row[i] | uint32_t{row[i + 1]} << 16;
  }
}

}  // namespace hearth::cpu::HEARTH_ISA
