// The forward as data: a flat list of semantic ops over named values (DESIGN 4). Plain structs, no behaviour.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/dtype.h"

namespace hearth::graph {

using ValueId = int32_t;
inline constexpr ValueId kNone = -1;  // an absent optional operand
using Ids = std::vector<ValueId>;

enum class OpKind : uint8_t {
  embed,
  scale,
  add,
  mul,
  act,
  gated_act,
  rms_norm,
  layer_norm,
  linear,
  lora,
  rope_angles,
  rope,
  kv_append,
  attention,
  softcap,
  slice_cols,
  concat_cols,
  gather_rows,
  pool,
  multi_linear,
  gate_up_act,
  linear_add,  // fused kinds: expand() gives the plain ops they stand for
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::linear_add) + 1;

enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu, relu2, sigmoid, tanh };
enum class Pooling : uint8_t { last, mean, cls };
enum class Lookup : uint8_t { ids, positions, row };  // which row of a table embed takes for row m of the step

enum class Role : uint8_t { weight, temp };
// Rows of a value: `packed` M rows of the step, `gathered` the rows named by out_rows, `sequences` one a sequence,
// `fixed` a weight's own N.
enum class Rows : uint8_t { packed, gathered, sequences, fixed };

struct ValueInfo {
  Role role = Role::temp;
  DType dtype = DType::f32;
  Rows rows = Rows::packed;
  int64_t rows_fixed = 0;  // with Rows::fixed: N of a matrix, 1 of a vector
  int64_t cols = 0;        // K of a matrix, length of a vector
  int64_t bytes = 0;       // weights: bytes in the file's format, set by the loader; 0: counted as fp32
  std::string name;        // weights: the checkpoint's module path, "model.layers.3.self_attn.q_proj"
};

struct Attrs {
  float eps = 0;    // norms
  float scale = 1;  // scale; attention: factor of q . k; lora: factor of the branch
  float cap = 0;    // attention and softcap; 0: none
  Activation act = Activation::silu;
  Pooling pooling = Pooling::last;
  bool normalize = false;          // pool: x / max(norm, 1e-12)
  int64_t H = 0, Hkv = 0, Dh = 0;  // rope: H heads of Dh; kv_append, attention
  int64_t width = 0;               // rms_norm: columns normed together, 0: all; attention without cache: window
  bool f32_out = false;            // linear: the sum stays unrounded fp32
  Lookup lookup = Lookup::ids;     // embed
  int64_t begin = 0, end = 0;      // slice_cols; embed by positions: added to each; by row: the row itself
  int32_t layer = -1;              // kv_append, attention: index into Program::kv_layers; -1: k and v as operands
  int32_t rope = -1;               // rope_angles, rope: index into Program::ropes
  int32_t module = -1;             // lora by slot: index into Program::adapter_modules
};

struct Op {
  OpKind kind;
  Ids in, out;
  Attrs attrs;
  std::string name;  // "model.layers.3.self_attn.q_proj"
};

// Angles of rotary embeddings (spec models 2.3). inv_freq is computed in fp64 and stored in fp32.
struct RopeSpec {
  std::vector<float> inv_freq;    // [rot / 2]
  float attention_factor = 1;     // multiplies cos and sin
  int64_t rot = 0;                // columns of a head that turn
  int64_t pair_stride = 0;        // half-split pairs (i, i + pair_stride); 0: interleaved pairs (2i, 2i + 1)
  double dynamic_base = 0;        // rope_type dynamic when > 0: the base before scaling,
  double dynamic_factor = 1;      //   the factor,
  int64_t dynamic_positions = 0;  //   and S0: positions below it use inv_freq as it is
  bool operator==(const RopeSpec&) const = default;
};

enum class KvFormat : uint8_t { f32, bf16, q8, q4 };  // q8, q4: affine groups of 64 along Dh, bf16 scale and bias
inline constexpr int64_t kPagePositions = 64;         // P
inline constexpr int64_t kKvGroup = 64;

// Layers of equal shape, window and format share a page table (DESIGN 4.1).
struct KvGroup {
  std::vector<int32_t> layers;  // indices into Program::kv_layers
  int64_t Hkv = 0, Dh = 0;
  int64_t window = 0;  // 0: all positions
  KvFormat format = KvFormat::bf16;
};
struct KvLayer {
  int32_t group = 0;
  int32_t index = 0;  // position in the group
};

struct Segment {
  int32_t begin = 0, end = 0;  // ops
  std::string name;            // "embed", "layers.0", ..., "head"
};

// A linear that adapters may change (lora by slot), W [N, K].
struct AdapterModule {
  std::string name;  // of the weight: "model.layers.3.self_attn.q_proj"
  int64_t N = 0, K = 0;
};

struct Program {
  DType activation = DType::f32;  // A of DESIGN 4.2: what r() rounds to
  std::vector<ValueInfo> values;
  std::vector<Op> ops;
  std::vector<Segment> segments;
  std::vector<ValueId> weights;  // every weight value, in order of first use
  std::vector<RopeSpec> ropes;
  std::vector<KvGroup> kv_groups;
  std::vector<KvLayer> kv_layers;
  std::vector<AdapterModule> adapter_modules;
  Ids results;  // logits, taps, pooled rows

  const ValueInfo& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
};

// The only dynamic extents: packed rows, gathered rows, visible positions of a row (an average is fine), sequences.
struct Extents {
  int64_t M = 1, gathered = 1, S = 0, B = 1;
};
int64_t rows_of(const ValueInfo& value, const Extents& extents);

std::string to_string(const Program& program);  // one line an op, for people and golden tests

}  // namespace hearth::graph
