#include "cli/fit_report.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/team.h"
#include "cli/machine.h"
#include "cli/rates.h"
#include "decode/embed.h"
#include "decode/memory.h"
#include "probe/cpu_probe.h"

namespace hearth::cli {
namespace {

constexpr int64_t kTypicalContext = 8192, kSkuContext = 32'768;
constexpr double kDenseShare = 0.82;                          // of the memory's speed that decoding reaches
constexpr double kUsableOfHost = 0.75, kUsableOfCard = 0.92;  // as budgets are by default
constexpr int64_t kCards[] = {8, 12, 16, 24, 48, 80, 141}, kHosts[] = {8, 16, 32, 64, 128};  // GB

double rounded(double value) { return std::round(value * 10) / 10; }

int64_t kv_read(const graph::Program& program, int64_t positions) {
  int64_t bytes = 0;
  for (const graph::KvGroup& group : program.kv_groups)
    bytes += graph::kv_page_bytes(group) / graph::kPagePositions *
             (group.window > 0 ? std::min(positions, group.window) : positions);
  return bytes;
}

// Speed by the bytes that a token reads; a measured speed says how fast they come, else the memory's. Null where
// neither is known.
class Prediction {
 public:
  Prediction(const model::Model& model, const decode::MemoryPlan& memory, double ram_gbs,
             const std::optional<MeasuredRate>& measured)
      : program_(memory.program()),
        streamed_(decode::streamed_bytes(model, program_)),
        bytes_per_s_(measured ? measured->decode_tps * bytes_at(measured->positions) : ram_gbs * 1e9 * kDenseShare) {}

  json::Value decode_tps(int64_t positions) const {
    return bytes_per_s_ > 0 ? json::Value(rounded(bytes_per_s_ / bytes_at(positions))) : json::Value();
  }

 private:
  double bytes_at(int64_t positions) const { return static_cast<double>(streamed_ + kv_read(program_, positions)); }

  const graph::Program& program_;
  int64_t streamed_;
  double bytes_per_s_;
};

json::Object machine_json(double ram_gbs) {
  json::Object o;
  o["cpu"] = cpu_info().model;
  o["cores"] = cpus_allowed();
  o["ram_bytes"] = memory_info().total;
  o["ram_gbs"] = rounded(ram_gbs);
  o["gpus"] = json::Array();  // this build has no executor for them
  return o;
}

// Positions that the model is used with: of an embedding model the tokens of a text that its files allow, which may be
// fewer than it was trained on.
int64_t positions_taken(const model::Model& model) {
  const int64_t trained = model.spec().context;
  return decode::is_embedding_model(model) ? std::min(trained, decode::embedding_of(model).tokens_max) : trained;
}

// On a card the program itself takes host memory, and repacking is the host's work.
int64_t on_card(const decode::MemoryNeed& need) {
  return need.weights + need.kv + need.logits + need.adapters + need.arena;
}

json::Array sku_matrix(const decode::MemoryPlan& memory, int64_t positions, int64_t takes) {
  const decode::MemoryNeed need = memory.at(positions);
  json::Array rows;
  const auto add = [&](const char* kind, int64_t gb, double usable_share, int64_t needed, int64_t beside) {
    const auto usable = static_cast<int64_t>(usable_share * static_cast<double>(gb) * 1e9);
    json::Object row;
    row["kind"] = kind;
    row["memory_bytes"] = gb * 1'000'000'000;
    row["usable_bytes"] = usable;
    row["needed_bytes"] = needed;
    row["fits"] = needed <= usable;
    row["max_safe_context"] = std::min(memory.largest(usable + beside), takes);
    rows.emplace_back(std::move(row));
  };
  for (const int64_t gb : kCards) add("card", gb, kUsableOfCard, on_card(need), need.total() - on_card(need));
  for (const int64_t gb : kHosts) add("host", gb, kUsableOfHost, need.total(), 0);
  return rows;
}

}  // namespace

double memory_gbs(int threads) {
  double gbps = 0;
  std::thread([&] {  // a team pins its caller for good
    try {
      Team team(threads);
      gbps = probe::read_rate(team, threads, int64_t{128} << 20, 5).gbps;
    } catch (const Error& error) {
      log::warn("fit", "how fast the memory is cannot be measured: {}", error.what());
    }
  })
      .join();
  return gbps;
}

json::Object fit_document(const Context& context, const model::Model& model, const FitQuestion& question) {
  const decode::EngineOptions options = engine_options(context);
  const std::unique_ptr<graph::Executor> executor = make_executor(context, model);
  const decode::MemoryPlan memory(model, *executor, options);
  const int64_t trained = model.spec().context, takes = positions_taken(model);
  // An embedder takes texts of any length that the model allows, whatever --context says.
  const int64_t asked = decode::is_embedding_model(model) ? 0 : options.context;
  const int64_t most = asked > 0 ? std::min(asked, takes) : takes;
  const int64_t ctx = question.positions.value_or(asked > 0 ? asked : takes);
  const int64_t typical = std::min({kTypicalContext, ctx, takes});
  const int64_t budget = options.memory_budget;
  const decode::MemoryNeed need = memory.at(ctx);
  const int64_t largest = std::min(memory.largest(budget), most);
  const bool speaks = !model.spec().encoder();
  const std::optional<std::string> key = rate_key(model, *executor, options);
  const std::optional<MeasuredRate> measured = key && speaks ? measured_rate(context.env(), *key) : std::nullopt;
  const Prediction prediction(model, memory, question.ram_gbs, measured);
  const auto tps = [&](int64_t positions) { return speaks ? prediction.decode_tps(positions) : json::Value(); };

  json::Object d, report, pools, ram, place;
  d["machine"] = machine_json(question.ram_gbs);
  d["context_tokens"] = ctx;
  d["typical_context_tokens"] = typical;
  d["typical_total_bytes"] = memory.at(typical).total();
  d["typical_decode_tps"] = tps(typical);
  d["measured_decode_tps"] = measured ? json::Value(rounded(measured->decode_tps)) : json::Value();
  d["measured_at"] = measured ? json::Value(measured->measured_at) : json::Value();
  report["fits"] = ctx <= largest;
  place["device"] = executor->info().name;
  place["layers"] = model.spec().L;
  place["weights_bytes"] = need.weights;
  place["kv_bytes"] = need.kv;
  report["placement"] = json::Array{std::move(place)};
  report["weights_bytes"] = need.weights;
  report["kv_bytes"] = need.kv;
  report["arena_bytes"] = need.arena;
  report["logits_bytes"] = need.logits;
  report["loading_bytes"] = need.loading;
  report["process_bytes"] = need.process;
  report["total_bytes"] = need.total();
  report["usable_bytes"] = budget;
  ram["total_bytes"] = need.total();
  ram["usable_bytes"] = budget;
  pools["ram"] = std::move(ram);
  report["pools"] = std::move(pools);
  report["max_safe_context"] = largest;
  report["trained_context"] = trained;
  report["predicted_decode_tps"] = tps(std::min(ctx, takes));
  d["report"] = std::move(report);
  d["sku_matrix_ctx"] = std::min(kSkuContext, takes);
  d["sku_matrix"] = sku_matrix(memory, std::min(kSkuContext, takes), takes);
  return d;
}

}  // namespace hearth::cli
