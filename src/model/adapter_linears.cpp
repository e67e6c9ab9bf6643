#include "graph/passes.h"
#include "model/forward.h"

namespace hearth::model {

std::vector<formats::AdapterLinear> adapter_linears(const ModelSpec& spec) {
  std::vector<formats::AdapterLinear> list;
  for (graph::AdapterModule& module : graph::with_adapter_slots(forward(spec, {})).adapter_modules)
    list.push_back({.module = std::move(module.name), .N = module.N, .K = module.K});
  return list;
}

}  // namespace hearth::model
