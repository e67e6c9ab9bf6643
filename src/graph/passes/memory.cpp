// plan_memory: largest block first, each at the lowest offset that is free during its whole life (Pisarchyk & Lee 2020,
// greedy by size). Values that share memory on purpose (a linear_add in place) count as one block.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/passes.h"

namespace hearth::graph {
namespace {

struct Block {
  ValueId first = kNone;  // any value of the block
  int64_t bytes = 0, offset = 0;
  int32_t begin = INT32_MAX, end = -1;  // ops, inclusive
};

struct Lives {
  std::vector<int32_t> begin, end;  // by ValueId; begin INT32_MAX: no op makes it
};

// A slice keeps the value it looks into alive.
Lives lives_of(const Program& program, std::span<const ValueId> root) {
  Lives lives{std::vector<int32_t>(program.values.size(), INT32_MAX), std::vector<int32_t>(program.values.size(), -1)};
  const auto use = [&](ValueId id, int32_t at) {
    int32_t& end = lives.end[static_cast<size_t>(root[static_cast<size_t>(id)])];
    end = std::max(end, at);
  };
  const auto last = static_cast<int32_t>(program.ops.size());
  for (int32_t i = 0; i < last; ++i) {
    const Op& op = program.ops[static_cast<size_t>(i)];
    for (const ValueId id : op.in)
      if (id != kNone) use(id, i);
    for (const ValueId id : op.out) {
      int32_t& begin = lives.begin[static_cast<size_t>(root[static_cast<size_t>(id)])];
      begin = std::min(begin, i);
      use(id, i);
    }
  }
  for (const ValueId id : program.results) use(id, last);
  return lives;
}

}  // namespace

int64_t rows_max(Rows rows, const Limits& limits) {
  switch (rows) {
    case Rows::packed: return limits.rows_max;
    case Rows::gathered: return limits.gathered_max;
    case Rows::sequences: return limits.sequences_max;
    case Rows::fixed: break;
  }
  return 1;
}

MemoryMap plan_memory(const Program& program, const Limits& limits, const MemoryRules& rules) {
  const size_t count = program.values.size();
  std::vector<ValueId> root(count);  // of a slice: the value it looks into
  std::iota(root.begin(), root.end(), 0);
  std::vector<bool> has_memory(count, false), result(count, false);
  for (const ValueId id : program.results) result[static_cast<size_t>(id)] = true;
  for (const Op& op : program.ops)
    for (const ValueId id : op.out) {
      const auto at = static_cast<size_t>(id);
      if (op.kind == OpKind::slice_cols) root[at] = root[static_cast<size_t>(op.in[0])];
      else has_memory[at] = rules.results || !result[at];
    }
  const Lives lives = lives_of(program, root);

  std::vector<ValueId> leader(count);
  std::iota(leader.begin(), leader.end(), 0);
  // The operand that an op writes over, where that is allowed, and the one that it reads beside it; else kNone.
  const auto overwritten = [&](const Op& op) -> std::pair<ValueId, ValueId> {
    if (rules.linear_add_in_place && op.kind == OpKind::linear_add) return {op.in[3], op.in[0]};
    if (!rules.adapted_in_place) return {kNone, kNone};
    const bool slot = op.kind == OpKind::lora && op.attrs.module >= 0;
    if (slot || op.kind == OpKind::add || op.kind == OpKind::gated_act) return {op.in[0], op.in[1]};
    return {kNone, kNone};
  };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto [z, x] = overwritten(op);
    if (z == kNone) continue;
    const ValueId y = op.out[0];
    const auto zi = static_cast<size_t>(z);
    if (has_memory[zi] && has_memory[static_cast<size_t>(y)] && root[zi] == z &&
        lives.end[zi] == static_cast<int32_t>(i) && root[static_cast<size_t>(x)] != z)
      leader[static_cast<size_t>(y)] = leader[zi];
  }

  std::vector<Block> blocks(count);
  for (size_t v = 0; v < count; ++v) {
    if (!has_memory[v] || lives.begin[v] == INT32_MAX) continue;
    const ValueInfo& value = program.values[v];
    const int64_t each = rules.bytes_per_value > 0 ? rules.bytes_per_value : static_cast<int64_t>(size_of(value.dtype));
    Block& block = blocks[static_cast<size_t>(leader[v])];
    block.first = leader[v];
    block.bytes = std::max(block.bytes, (rows_max(value.rows, limits) * value.cols * each + 63) / 64 * 64);
    block.begin = std::min(block.begin, lives.begin[v]);
    block.end = std::max(block.end, lives.end[v]);
  }

  std::vector<Block*> order, placed;
  for (Block& block : blocks)
    if (block.first != kNone) order.push_back(&block);
  std::stable_sort(order.begin(), order.end(), [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
  MemoryMap map{.offset = std::vector<int64_t>(count, -1)};
  for (Block* block : order) {
    int64_t at = 0;
    for (const Block* other : placed)  // ascending offsets
      if (other->begin <= block->end && block->begin <= other->end && at + block->bytes > other->offset)
        at = std::max(at, other->offset + other->bytes);
    block->offset = at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Block* a, const Block* b) { return a->offset < b->offset; }),
                  block);
    map.bytes = std::max(map.bytes, at + block->bytes);
  }
  for (size_t v = 0; v < count; ++v)
    if (has_memory[v] && lives.begin[v] != INT32_MAX) map.offset[v] = blocks[static_cast<size_t>(leader[v])].offset;
  return map;
}

}  // namespace hearth::graph
