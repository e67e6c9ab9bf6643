#include "graph/builder.h"

#include <algorithm>

#include "graph/op_info.h"

namespace hearth::graph {

void Builder::segment(std::string name) {
  const int32_t at = static_cast<int32_t>(program_.ops.size());
  if (!program_.segments.empty()) program_.segments.back().end = at;
  program_.segments.push_back({at, at, std::move(name)});
}

Builder::Builder(Program start) : program_(std::move(start)) {
  for (const ValueId id : program_.weights) weights_.emplace(program_.value(id).name, id);
  for (const Op& op : program_.ops) note_angles(op);
}

void Builder::note_angles(const Op& op) {
  if (op.kind != OpKind::rope_angles || op.attrs.rope < 0) return;
  const auto rope = static_cast<size_t>(op.attrs.rope);
  if (rope >= angles_.size()) angles_.resize(rope + 1, kNone);
  if (angles_[rope] == kNone) angles_[rope] = op.out[0];
  rope_of_.emplace(op.out[0], op.attrs.rope);
}

Value Builder::matrix(std::string name, int64_t N, int64_t K) {
  const auto [known, fresh] = weights_.try_emplace(name, static_cast<ValueId>(program_.values.size()));
  if (!fresh) {
    const ValueInfo& v = program_.value(known->second);
    HEARTH_CHECK(v.rows_fixed == N && v.cols == K, "{}", name);
    return {known->second};
  }
  ValueInfo v{.role = Role::weight, .rows = Rows::fixed, .rows_fixed = N, .cols = K, .name = std::move(name)};
  program_.values.push_back(std::move(v));
  program_.weights.push_back(known->second);
  return {known->second};
}

Value Builder::vector(std::string name, int64_t length) { return matrix(std::move(name), 1, length); }

std::string Builder::op_name(OpKind kind, const std::string& given) {
  if (!given.empty()) return given;
  const std::string scope = program_.segments.empty() ? "" : program_.segments.back().name + ".";
  return fmt::format("{}{}{}", scope, info(kind).name, program_.ops.size());
}

Ids Builder::emit(Op op) {
  op.name = op_name(op.kind, op.name);
  const bool fresh = op.out.empty();
  std::vector<ValueInfo> types = info(op.kind).infer(OpView{program_, op});
  if (fresh)
    for (ValueInfo& type : types) {
      type.name = op.name;
      program_.values.push_back(std::move(type));
      op.out.push_back(static_cast<ValueId>(program_.values.size()) - 1);
    }
  HEARTH_CHECK(op.out.size() == types.size(), "{}: {} results, {} expected", op.name, op.out.size(), types.size());
  note_angles(op);
  program_.ops.push_back(op);
  return op.out;
}

Value Builder::one(OpKind kind, Ids in, Attrs attrs, std::string name) {
  return {emit(Op{.kind = kind, .in = std::move(in), .out = {}, .attrs = attrs, .name = std::move(name)})[0]};
}

Value Builder::embed(Value table) { return one(OpKind::embed, {table.id}, {}, program_.value(table.id).name); }
Value Builder::embed_positions(Value table, int64_t first) {
  return one(OpKind::embed, {table.id}, {.lookup = Lookup::positions, .begin = first}, program_.value(table.id).name);
}
Value Builder::embed_row(Value table, int64_t row) {
  return one(OpKind::embed, {table.id}, {.lookup = Lookup::row, .begin = row}, program_.value(table.id).name);
}
Value Builder::scale(Value x, float c) { return one(OpKind::scale, {x.id}, {.scale = c}); }
Value Builder::add(Value x, Value z) { return one(OpKind::add, {x.id, z.id}, {}); }
Value Builder::mul(Value x, Value z) { return one(OpKind::mul, {x.id, z.id}, {}); }
Value Builder::act(Value x, Activation f) { return one(OpKind::act, {x.id}, {.act = f}); }
Value Builder::gated_act(Value gate, Value up, Activation f) {
  return one(OpKind::gated_act, {gate.id, up.id}, {.act = f});
}

Value Builder::rms_norm(Value x, Value w, float eps, int64_t width) {
  Attrs attrs{.eps = eps};
  attrs.width = width;
  return one(OpKind::rms_norm, {x.id, w.id}, attrs, w ? program_.value(w.id).name : "");
}

Value Builder::layer_norm(Value x, Value w, Value b, float eps) {
  return one(OpKind::layer_norm, {x.id, w.id, b.id}, {.eps = eps}, program_.value(w.id).name);
}

Value Builder::linear(Value x, Value W, Value bias, bool f32_out) {
  Attrs attrs;
  attrs.f32_out = f32_out;
  return one(OpKind::linear, {x.id, W.id, bias.id}, attrs, program_.value(W.id).name);
}

Value Builder::lora(Value y, Value x, Value a, Value b, float scale) {
  return one(OpKind::lora, {y.id, x.id, a.id, b.id}, {.scale = scale}, program_.value(a.id).name);
}

Value Builder::lora(Value y, Value x, std::string module) {
  Attrs attrs;
  attrs.module = static_cast<int32_t>(program_.adapter_modules.size());
  program_.adapter_modules.push_back({.name = module, .N = program_.value(y.id).cols, .K = program_.value(x.id).cols});
  return one(OpKind::lora, {y.id, x.id}, attrs, std::move(module) + ".lora");
}

Value Builder::rope_angles(const RopeSpec& spec) {
  const auto at = std::find(program_.ropes.begin(), program_.ropes.end(), spec);
  const int32_t index = static_cast<int32_t>(at - program_.ropes.begin());
  if (const auto i = static_cast<size_t>(index); i < angles_.size() && angles_[i] != kNone) return {angles_[i]};
  if (at == program_.ropes.end()) program_.ropes.push_back(spec);
  Attrs attrs;
  attrs.rope = index;
  return one(OpKind::rope_angles, {}, attrs, fmt::format("rope_angles{}", index));
}

Value Builder::rope(Value x, Value angles, int64_t H, int64_t Dh) {
  Attrs attrs;
  attrs.H = H;
  attrs.Dh = Dh;
  const auto rope = rope_of_.find(angles.id);
  HEARTH_CHECK(rope != rope_of_.end(), "rope needs the value of rope_angles");
  attrs.rope = rope->second;
  return one(OpKind::rope, {x.id, angles.id}, attrs);
}

int32_t Builder::kv_layer(const AttendSpec& spec) {
  const int32_t layer = static_cast<int32_t>(program_.kv_layers.size());
  for (size_t g = 0; g < program_.kv_groups.size(); ++g) {
    KvGroup& group = program_.kv_groups[g];
    if (group.Hkv != spec.Hkv || group.Dh != spec.Dh || group.window != spec.window || group.format != spec.format)
      continue;
    program_.kv_layers.push_back({static_cast<int32_t>(g), static_cast<int32_t>(group.layers.size())});
    group.layers.push_back(layer);
    return layer;
  }
  program_.kv_layers.push_back({static_cast<int32_t>(program_.kv_groups.size()), 0});
  program_.kv_groups.push_back({{layer}, spec.Hkv, spec.Dh, spec.window, spec.format});
  return layer;
}

static Attrs attention_attrs(const AttendSpec& spec) {
  Attrs attrs{.scale = spec.scale, .cap = spec.cap};
  attrs.H = spec.H;
  attrs.Hkv = spec.Hkv;
  attrs.Dh = spec.Dh;
  return attrs;
}

Value Builder::attend(Value q, Value k, Value v, const AttendSpec& spec) {
  Attrs attrs = attention_attrs(spec);
  if (spec.donor) {
    attrs.layer = *spec.donor;
  } else {
    attrs.layer = kv_layer(spec);
    emit(Op{.kind = OpKind::kv_append, .in = {k.id, v.id}, .out = {}, .attrs = attrs, .name = {}});
  }
  return one(OpKind::attention, {q.id}, attrs);
}

Value Builder::attend_plain(Value q, Value k, Value v, const AttendSpec& spec) {
  Attrs attrs = attention_attrs(spec);
  attrs.width = spec.window;
  return one(OpKind::attention, {q.id, k.id, v.id}, attrs);
}

Value Builder::softcap(Value x, float cap) {
  Attrs attrs;
  attrs.cap = cap;
  return one(OpKind::softcap, {x.id}, attrs);
}

Value Builder::slice_cols(Value x, int64_t begin, int64_t end) {
  Attrs attrs;
  attrs.begin = begin;
  attrs.end = end;
  return one(OpKind::slice_cols, {x.id}, attrs);
}

Value Builder::concat_cols(Value x, Value z) { return one(OpKind::concat_cols, {x.id, z.id}, {}); }
Value Builder::gather_rows(Value x) { return one(OpKind::gather_rows, {x.id}, {}); }

Value Builder::pool(Value x, Pooling pooling, bool normalize) {
  Attrs attrs;
  attrs.pooling = pooling;
  attrs.normalize = normalize;
  return one(OpKind::pool, {x.id}, attrs);
}

Program Builder::finish(std::initializer_list<Value> results) {
  if (!program_.segments.empty()) program_.segments.back().end = static_cast<int32_t>(program_.ops.size());
  for (const Value v : results) program_.results.push_back(v.id);
  return std::move(program_);
}

}  // namespace hearth::graph
