#include "decode/memory.h"

#include <unistd.h>

#include <algorithm>

#include "base/cgroup.h"
#include "base/error.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::decode {

model::ForwardOptions forward_options(const model::Model& model, const EngineOptions& options) {
  model::ForwardOptions forward;
  const bool parity = options.numerics == graph::Numerics::parity;
  forward.activation = options.activation ? *options.activation : parity ? model.spec().dtype : DType::f32;
  if (options.kv) forward.kv.assign(static_cast<size_t>(model.spec().L), *options.kv);
  else forward.kv = model.kv();
  for (const graph::KvFormat format : forward.kv)
    if ((format == graph::KvFormat::q8 || format == graph::KvFormat::q4) && model.spec().Dh % graph::kKvGroup != 0)
      fail(ErrorKind::invalid_argument, "{}: a KV cache of q8 or q4 needs heads of a multiple of {}, these have {}",
           model.spec().file, graph::kKvGroup, model.spec().Dh);
  return forward;
}

int64_t default_memory_budget() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::min(bytes, cgroup_memory_limit().value_or(bytes));
  return bytes / 4 * 3;
}

namespace {

MemoryNeed need_without_kv(const model::Model& model, const EngineOptions& options, const graph::Program& program) {
  MemoryNeed need;
  for (const auto& [name, tensor] : model.tensors())
    need.weights += static_cast<int64_t>(tensor.data.size() + tensor.scales.size() + tensor.biases.size());
  need.logits = 4 * options.gathered_max * model.spec().V;
  graph::Limits limits{.rows_max = std::max(options.prefill_chunk, options.sequences_max),
                       .sequences_max = options.sequences_max,
                       .gathered_max = options.gathered_max};
  need.arena = graph::plan_memory(program, limits).bytes;
  for (const graph::KvGroup& group : program.kv_groups)
    if (group.window == 0) need.kv_per_position += graph::kv_page_bytes(group) / graph::kPagePositions;
  return need;
}

int64_t kv_bytes(const EngineOptions& options, const graph::Program& program, int64_t context) {
  int64_t sum = 0;
  for (const graph::KvGroup& group : program.kv_groups)
    sum += options.sequences_max * pages_needed(group, context, options.prefill_chunk) * graph::kv_page_bytes(group);
  return sum;
}

}  // namespace

MemoryNeed memory_need(const model::Model& model, const EngineOptions& options, int64_t context) {
  const graph::Program program = model::forward(model.spec(), forward_options(model, options));
  MemoryNeed need = need_without_kv(model, options, program);
  need.kv = kv_bytes(options, program, context);
  return need;
}

int64_t largest_context(const model::Model& model, const EngineOptions& options, int64_t budget) {
  const graph::Program program = model::forward(model.spec(), forward_options(model, options));
  const int64_t fixed = need_without_kv(model, options, program).total();
  const int64_t trained = model.spec().context;
  const auto positions = [&](int64_t pages) { return std::min(trained, pages * graph::kPagePositions); };
  int64_t low = 0;  // in pages; `high` is not tried
  int64_t high = (trained + graph::kPagePositions - 1) / graph::kPagePositions + 1;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    if (fixed + kv_bytes(options, program, positions(middle)) <= budget) low = middle;
    else high = middle;
  }
  return positions(low);
}

}  // namespace hearth::decode
