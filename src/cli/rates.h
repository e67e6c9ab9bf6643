// Decode speeds that `hearth bench` measured here, for `hearth fit` and the server, which prefer them to what they
// compute (spec server 43). A file each in the state folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/engine_flags.h"

namespace hearth::cli {

struct MeasuredRate {
  double decode_tps = 0;
  int64_t positions = 0;    // in the cache, on average over the answer
  std::string measured_at;  // ISO 8601
};

// Names the state of the model's files, the processor, the executor with its threads, numerics and KV format: what a
// speed holds for. nullopt when a file of the model is gone.
std::optional<std::string> rate_key(const model::Model& model, const graph::Executor& executor,
                                    const decode::EngineOptions& options);

std::filesystem::path rates_folder(const hub::Env& env);
// nullopt: not measured, or the file cannot be read.
std::optional<MeasuredRate> measured_rate(const hub::Env& env, const std::string& key);
// Throws Error{io}.
void keep_rate(const hub::Env& env, const std::string& key, const MeasuredRate& rate);

}  // namespace hearth::cli
