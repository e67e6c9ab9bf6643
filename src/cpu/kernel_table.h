// The kernels of every op but the matrix products, one table an instruction set. Chosen once, when an executor is made.
// All instruction sets give the same bits (kernels/vec_generic.inl says why). Kernels are noexcept: the plan has
// checked their arguments. `r` is the type that r() of the op definitions rounds to.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"
#include "graph/program.h"
#include "tensor/dtype.h"

namespace hearth::cpu {

struct RopeShape {
  int64_t Dh = 0, rot = 0, pair_stride = 0;  // as graph::RopeSpec
};

inline constexpr int64_t kChunkPositions = 256;  // attention's unit of merging (DESIGN 7)
inline constexpr int64_t kTilePositions = 64;
static_assert(kTilePositions == graph::kPagePositions, "bf16 keys lie in pairs of a page's positions (graph/kv.h)");
inline constexpr int64_t kChunkTiles = kChunkPositions / kTilePositions;

// K or V of up to 64 positions of one head. Rows lie `stride` values apart (a quantized row has Dh of them); bf16 keys
// lie in pairs (graph/kv.h) and have no stride.
struct KvTile {
  const std::byte* data = nullptr;
  const uint16_t *scales = nullptr, *biases = nullptr;  // q8, q4: bf16 bits, Dh / 64 a row
  int64_t stride = 0;
};

// Operands of attend_chunk: `rows` query rows over one chunk of one KV head. ld = Dh rounded up to 16.
struct AttendChunk {
  int64_t rows = 0, Dh = 0;
  const float* q = nullptr;  // [rows, Dh], row stride ldq
  int64_t ldq = 0;
  KvTile keys[kChunkTiles], values[kChunkTiles];
  graph::KvFormat format = graph::KvFormat::f32;
  float scale = 1, cap = 0;
  bool fetch = false;                             // few rows of bf16: ask for each tile while the one before it is read
  const int32_t *low = nullptr, *high = nullptr;  // [rows] visible positions [low, high) of the chunk, within 0 .. 256
  float* tile = nullptr;                          // scratch, 64 * ld
  float* z = nullptr;                             // scratch, rows * 256
  float *top = nullptr, *total = nullptr;         // [rows] out
  float* out = nullptr;                           // [rows, ld] out
};

// lora by slot, rows[0 .. count) of x and y, in two products; the factors lie as graph/lora_layout.h says. Row j of t
// belongs to rows[j].
struct LoraDown {  // t = x A
  const int32_t* rows = nullptr;
  int64_t count = 0;
  const float* x = nullptr;  // [M, K], row stride ldx
  int64_t ldx = 0, K = 0;
  const float* a = nullptr;  // [blocks, K, 16]
  int64_t blocks = 0;
  float* t = nullptr;  // [count, 16 blocks], row stride ldt
  int64_t ldt = 0;
};
struct LoraUp {  // y = r(y + r(scale * (t B)))
  const int32_t* rows = nullptr;
  int64_t count = 0;
  const float* t = nullptr;
  int64_t ldt = 0, R = 0;
  const float* b = nullptr;  // [n / 32 rounded up, R, 32]
  int64_t n = 0;
  float scale = 1;
  float* y = nullptr;  // [M, n], row stride ldy
  int64_t ldy = 0;
  DType r = DType::f32;
};

struct KernelTable {
  Isa isa;
  void (*scale)(const float* x, float c, float* y, int64_t n, DType r) noexcept;
  void (*add)(const float* x, const float* z, float* y, int64_t n, DType r) noexcept;
  void (*mul)(const float* x, const float* z, float* y, int64_t n, DType r) noexcept;
  void (*round_row)(const float* x, float* y, int64_t n, DType r) noexcept;
  void (*softcap)(const float* x, float cap, float* y, int64_t n, DType r) noexcept;
  void (*act)(graph::Activation f, const float* x, float* y, int64_t n, DType r) noexcept;
  void (*gated_act)(graph::Activation f, const float* gate, const float* up, float* y, int64_t n, DType r) noexcept;
  void (*accumulate_rows)(const float* x, const float* w, int64_t ldw, float* y, int64_t K, int64_t n) noexcept;
  void (*lora_down)(const LoraDown& c) noexcept;
  void (*lora_up)(const LoraUp& c) noexcept;
  void (*rms_norm)(const float* x, const float* w, float* y, int64_t n, float eps, DType r) noexcept;
  void (*layer_norm)(const float* x, const float* w, const float* b, float* y, int64_t n, float eps, DType r) noexcept;
  void (*rope)(const float* x, const float* cosine, const float* sine, float* y, const RopeShape& shape,
               DType r) noexcept;
  void (*attend_chunk)(const AttendChunk& c) noexcept;
  void (*merge_chunk)(const float* chunk_out, float chunk_top, float chunk_total, float* out, float& top, float& total,
                      int64_t Dh) noexcept;
  void (*finish_row)(const float* out, float total, float* y, int64_t Dh, DType r) noexcept;
  void (*store_bf16_row)(const float* x, uint16_t* y, int64_t n) noexcept;
  void (*store_bf16_key)(const float* x, uint32_t* y, int64_t n) noexcept;
  void (*exp)(const float* x, float* y, int64_t n) noexcept;  // for tests of the function
};

// amx shares the table of avx512. The set must be available().
const KernelTable& kernel_table(Isa isa);

}  // namespace hearth::cpu
