#include "decode/load.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "decode/memory.h"

namespace hearth::decode {

std::vector<graph::WeightHandle> load_weights(model::Model& model, graph::Executor& executor, graph::Program& program,
                                              const std::function<void(int64_t, int64_t)>& progress) {
  const std::vector<graph::LayoutHint> hints = layout_hints(program);
  std::vector<graph::WeightHandle> handles;
  int64_t total = 0, done = 0;
  for (const graph::ValueId id : program.weights) total += 4 * program.value(id).rows_fixed * program.value(id).cols;
  for (size_t i = 0; i < hints.size(); ++i) {
    graph::ValueInfo& value = program.values[static_cast<size_t>(program.weights[i])];
    const PackedTensor tensor = model.weights().get(value);
    value.bytes = static_cast<int64_t>(tensor.data.size() + tensor.scales.size() + tensor.biases.size());
    handles.push_back(executor.load(tensor, hints[i], value.name));
    if (hints[i] != graph::LayoutHint::gather) model.weights().release(tensor);
    done += 4 * value.rows_fixed * value.cols;
    if (progress) progress(done, total);
  }
  if (const auto bad = executor.bad_weights(); !bad.empty()) {
    int64_t count = 0;
    for (const graph::BadWeight& weight : bad) count += weight.count;
    log::warn("decode",
              "{}: {} scales or values in {} of {} weights are NaN or infinite, first in {}; hearth doctor --deep "
              "lists them",
              model.spec().file, count, bad.size(), hints.size(), bad.front().name);
  }
  return handles;
}

void require_numerics(const graph::Executor& executor, graph::Numerics numerics) {
  const graph::DeviceInfo device = executor.info();
  if (std::find(device.numerics.begin(), device.numerics.end(), numerics) == device.numerics.end())
    fail(ErrorKind::invalid_argument, "numerics {} is not offered by the executor {}", name_of(numerics), device.name);
}

}  // namespace hearth::decode
