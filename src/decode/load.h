// From a model's files into an executor: what the engine and the embedder share.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "graph/executor.h"
#include "model/model.h"

namespace hearth::decode {

// Loads every weight of the program, in the order of Program::weights, and fills their ValueInfo::bytes. Pages of the
// files are given back, but for tables that stay in them. Weights with NaN or infinite values are warned about.
// progress(done, total) counts bytes. Throws Error{corrupt_file} for weights that do not match, Error{out_of_memory}.
std::vector<graph::WeightHandle> load_weights(model::Model& model, graph::Executor& executor, graph::Program& program,
                                              const std::function<void(int64_t done, int64_t total)>& progress);

// Throws Error{invalid_argument} when the executor does not offer these numerics.
void require_numerics(const graph::Executor& executor, graph::Numerics numerics);

}  // namespace hearth::decode
