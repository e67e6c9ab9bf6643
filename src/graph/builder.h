// Writes a Program: running a model's forward against a Builder computes nothing, it lists ops (DESIGN 4).
// Every method checks its operands through the op's type rule and throws Error{corrupt_file} (weights that do not fit)
// naming op, shapes and numbers. Not thread-safe.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/program.h"

namespace hearth::graph {

struct Value {
  ValueId id = kNone;
  explicit operator bool() const { return id != kNone; }
};

struct AttendSpec {
  int64_t H = 0, Hkv = 0, Dh = 0;
  float scale = 1, cap = 0;
  int64_t window = 0;  // 0: all positions
  KvFormat format = KvFormat::bf16;
  std::optional<int32_t> donor;  // KV layer whose cache is read instead of an own one (nothing is appended)
};

class Builder {
 public:
  explicit Builder(DType activation) { program_.activation = activation; }
  explicit Builder(Program start);  // goes on with a program; for passes

  // Names: ops are called scope + label; weights keep the name they are given (the checkpoint's module path).
  void segment(std::string name);  // starts a segment

  Value matrix(std::string name, int64_t N, int64_t K);  // the same name gives the same value
  Value vector(std::string name, int64_t length);

  Value embed(Value table);                           // rows named by the step's ids
  Value embed_positions(Value table, int64_t first);  // rows first + position
  Value embed_row(Value table, int64_t row);          // the same row for all
  Value scale(Value x, float c);
  Value add(Value x, Value z);
  Value mul(Value x, Value z);  // z: like x, [M, 1] or a vector
  Value act(Value x, Activation f);
  Value gated_act(Value gate, Value up, Activation f);
  Value rms_norm(Value x, Value w, float eps, int64_t width = 0);  // w may be none; width 0: all columns
  Value layer_norm(Value x, Value w, Value b, float eps);
  Value linear(Value x, Value W, Value bias = {}, bool f32_out = false);
  Value lora(Value y, Value x, Value a, Value b, float scale);  // a [K, R], b [R, N]
  Value lora(Value y, Value x, std::string module);             // by slot: factors come with each run
  Value rope_angles(const RopeSpec& spec);                      // once a spec; later calls give the same value
  Value rope(Value x, Value angles, int64_t H, int64_t Dh);
  Value attend(Value q, Value k, Value v, const AttendSpec& spec);        // kv_append and attention over the cache
  Value attend_plain(Value q, Value k, Value v, const AttendSpec& spec);  // over k and v of this step alone
  Value softcap(Value x, float cap);
  Value slice_cols(Value x, int64_t begin, int64_t end);
  Value concat_cols(Value x, Value z);
  Value gather_rows(Value x);  // rows of out_rows
  Value pool(Value x, Pooling pooling, bool normalize);

  // KV layer of the last attend() that appended.
  int32_t last_kv_layer() const { return static_cast<int32_t>(program_.kv_layers.size()) - 1; }

  // Appends a ready op (passes use it); infers and creates its results when op.out is empty.
  Ids emit(Op op);

  Program finish(std::initializer_list<Value> results);
  const Program& program() const { return program_; }

 private:
  Value one(OpKind kind, Ids in, Attrs attrs, std::string name = {});
  int32_t kv_layer(const AttendSpec& spec);
  std::string op_name(OpKind kind, const std::string& given);
  void note_angles(const Op& op);

  Program program_;
  std::unordered_map<std::string, ValueId> weights_;  // by name
  std::vector<ValueId> angles_;                       // by rope: the value of its rope_angles; kNone before that
  std::unordered_map<ValueId, int32_t> rope_of_;      // the other way round
};

}  // namespace hearth::graph
