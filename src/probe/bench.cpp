#include "probe/bench.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "decode/sampler.h"
#include "graph/op_info.h"

namespace hearth::probe {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<int32_t> random_ids(int64_t n, int64_t V) {
  Random random(1);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.next() % static_cast<uint64_t>(V));
  return ids;
}

// Evaluates ids in chunks, the logits of the last one.
void prefill(decode::Engine& engine, decode::Sequence& sequence, std::span<const int32_t> ids) {
  const int64_t chunk = engine.options().prefill_chunk, total = static_cast<int64_t>(ids.size());
  for (int64_t at = 0; at < total; at += chunk) {
    const int64_t n = std::min(chunk, total - at);
    const decode::StepInput input{&sequence, ids.subspan(static_cast<size_t>(at), static_cast<size_t>(n)),
                                  at + n == total ? 1 : 0};
    engine.step({&input, 1});
  }
}

// Of the matrices that an op reads, each once.
std::string formats_of(const model::Model& model, const graph::Program& program, const graph::Op& op) {
  std::set<std::string> names;
  for (const graph::ValueId id : op.in) {
    if (id == graph::kNone) continue;
    const graph::ValueInfo& value = program.value(id);
    if (value.role == graph::Role::weight && value.rows_fixed > 1)
      names.insert(name_of(model.weights().stored(value).format));
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

}  // namespace

BenchSeries series(std::vector<double> tps) {
  BenchSeries s{.tps = tps};
  std::sort(tps.begin(), tps.end());
  const size_t n = tps.size();
  if (n == 0) return s;
  s.median = tps[n / 2];
  s.p10 = tps[n / 10];
  s.p90 = tps[std::min(n - 1, n * 9 / 10)];
  return s;
}

BenchResult bench(decode::Engine& engine, const BenchOptions& o,
                  const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t V = engine.spec().V;
  const std::vector<int32_t> prompt = random_ids(std::max<int64_t>(1, o.prompt_tokens), V);
  const std::vector<int32_t> filler = random_ids(std::max<int64_t>(1, o.depth), V);
  std::vector<double> prefill_tps, decode_tps;
  for (int64_t run = 0; run <= o.runs; ++run) {
    decode::Sequence sequence = engine.cache().make();
    if (o.prompt_tokens > 0) {
      const double start = now();
      prefill(engine, sequence, prompt);
      if (run > 0) prefill_tps.push_back(static_cast<double>(o.prompt_tokens) / (now() - start));
    }
    if (o.tokens > 0) {
      engine.cache().truncate(sequence, 0);
      prefill(engine, sequence, filler);
      int32_t id = filler.back();
      const double start = now();
      for (int64_t i = 0; i < o.tokens; ++i) {
        const decode::StepInput input{&sequence, {&id, 1}, 1};
        const std::span<float> logits = engine.step({&input, 1});
        id = decode::argmax(logits);
      }
      if (run > 0) decode_tps.push_back(static_cast<double>(o.tokens) / (now() - start));
    }
    engine.cache().free(sequence);
    if (progress) progress(run, o.runs);
  }
  const graph::Program& program = engine.plan_for(1).program();
  const auto decoded = [&](int64_t S) { return graph::cost(program, {.M = 1, .gathered = 1, .S = S, .B = 1}); };
  const graph::Cost token = decoded(1);
  return {.prefill = series(prefill_tps),
          .decode = series(decode_tps),
          .streamed_bytes = token.bytes_weights,
          .kv_bytes = decoded(o.depth + (o.tokens + 1) / 2).bytes - decoded(0).bytes,
          .flops_token = graph::cost(program, {.M = 1, .gathered = 0, .S = o.prompt_tokens / 2, .B = 1}).flops};
}

StepTable step_table(decode::Engine& engine, int64_t M, int64_t depth, int64_t steps) {
  const std::vector<int32_t> ids = random_ids(depth + M, engine.spec().V);
  decode::Sequence sequence = engine.cache().make();
  if (depth > 0) prefill(engine, sequence, std::span(ids).first(static_cast<size_t>(depth)));
  const graph::Program& program = engine.plan_for(M).program();
  const graph::Extents extents{.M = M, .gathered = 1, .S = depth + M / 2, .B = 1};
  const decode::StepInput input{&sequence, std::span(ids).subspan(static_cast<size_t>(depth)), 1};
  std::vector<std::vector<double>> seconds(program.ops.size());
  std::vector<double> whole;
  for (int64_t s = 0; s <= 2 * steps; ++s) {
    const bool timed = s > steps;
    engine.executor().set_timing(timed);
    const double start = now();
    engine.step({&input, 1});
    if (!timed && s > 0) whole.push_back(now() - start);
    if (timed)
      for (const graph::OpTime& t : engine.executor().timing()) seconds[static_cast<size_t>(t.op)].push_back(t.seconds);
    // Back to `depth`; the step may have given pages back that its own rows saw through a window.
    const int64_t kept = engine.cache().reusable_length(sequence, depth);
    engine.cache().truncate(sequence, kept);
    if (kept < depth)
      prefill(engine, sequence, std::span(ids).subspan(static_cast<size_t>(kept), static_cast<size_t>(depth - kept)));
  }
  engine.executor().set_timing(false);
  engine.cache().free(sequence);

  std::map<std::pair<std::string, std::string>, StepRow> rows;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const graph::Op& op = program.ops[i];
    const bool head = !program.results.empty() && !op.out.empty() && op.out[0] == program.results[0];
    const std::string name = std::string(info(op.kind).name) + (head ? " (head)" : "");
    const std::string format = formats_of(engine.model(), program, op);
    StepRow& row = rows[{name, format}];
    row.op = name;
    row.format = format;
    ++row.count;
    row.ms += 1000 * median(seconds[i]);
    const graph::Cost c = graph::cost(program, op, extents);
    row.bytes += c.bytes + c.bytes_weights;
    row.flops += c.flops;
  }
  StepTable table{.step_ms = 1000 * median(whole)};
  for (const auto& [key, row] : rows) table.rows.push_back(row);
  std::sort(table.rows.begin(), table.rows.end(), [](const StepRow& a, const StepRow& b) { return a.ms > b.ms; });
  return table;
}

}  // namespace hearth::probe
