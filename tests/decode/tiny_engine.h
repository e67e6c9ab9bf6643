// Engines over the tiny checkpoint on the reference executor.
#pragma once
#include <memory>
#include <vector>

#include "decode/engine.h"
#include "support/tiny_model.h"

namespace hearth::decode {

inline std::unique_ptr<Engine> tiny_engine(const test::TinyModel& m, EngineOptions options = {}) {
  const test::TempDir dir;  // mapped files outlive their names
  if (options.memory_budget == 0) options.memory_budget = 1'000'000'000;
  return std::make_unique<Engine>(test::open_tiny_model(m, dir), graph::make_reference_executor(1), options);
}

inline std::vector<int32_t> prompt_ids(int64_t n, uint64_t seed = 5) {
  Random random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(random.below(256)));
  return ids;
}

}  // namespace hearth::decode
