#include "cli/rates.h"

#include "base/digest.h"
#include "base/fs.h"
#include "base/log.h"
#include "cli/machine.h"

namespace hearth::cli {
namespace {

std::filesystem::path file_of(const hub::Env& env, const std::string& key) {
  return rates_folder(env) / (key + ".json");
}

}  // namespace

std::optional<std::string> rate_key(const model::Model& model, const graph::Executor& executor,
                                    const decode::EngineOptions& options) {
  const std::optional<std::string> state = state_of(model);
  if (!state) return std::nullopt;
  const std::string kv = options.kv ? std::to_string(static_cast<int>(*options.kv)) : "config";
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}", *state, cpu_info().model, executor.info().name,
                                name_of(options.numerics), kv))
      .substr(0, 32);
}

std::filesystem::path rates_folder(const hub::Env& env) { return hub::state_folder(env) / "rates"; }

std::optional<MeasuredRate> measured_rate(const hub::Env& env, const std::string& key) {
  const std::filesystem::path path = file_of(env, key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const json::Value file = json::parse(io::real_fs().read_file(path, 4096), path.string());
    const json::Value* tps = file.get("decode_tps");
    const json::Value* positions = file.get("positions");
    const json::Value* at = file.get("measured_at");
    if (tps && positions && at && tps->as_double("decode_tps") > 0)
      return MeasuredRate{.decode_tps = tps->as_double("decode_tps"),
                          .positions = positions->as_int("positions"),
                          .measured_at = at->as_string("measured_at")};
    log::warn("fit", "{} holds no speed", path.string());
  } catch (const Error& error) {
    log::warn("fit", "{}", error.what());
  }
  return std::nullopt;
}

void keep_rate(const hub::Env& env, const std::string& key, const MeasuredRate& rate) {
  json::Object o;
  o["decode_tps"] = rate.decode_tps;
  o["positions"] = rate.positions;
  o["measured_at"] = rate.measured_at;
  io::real_fs().make_dirs(rates_folder(env));
  io::write_file_atomic(io::real_fs(), file_of(env, key), json::dump(o) + "\n", 0600);
}

}  // namespace hearth::cli
