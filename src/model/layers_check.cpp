#include <fmt/format.h>

#include "base/error.h"
#include "model/open.h"

namespace hearth::model {

void check_layers(const ModelSpec& spec, const WeightTable& weights) {
  // A norm that every layer has. Layer 0 is left to the loader: what a program of one layer lacks, it names at once.
  const auto norm_of = [&](int64_t layer) {
    return spec.encoder() ? fmt::format("model.encoder.layer.{}.output.LayerNorm", layer)
                          : fmt::format("model.layers.{}.input_layernorm", layer);
  };
  for (int64_t layer = 1; layer < spec.L; ++layer)
    if (!weights.has(norm_of(layer)))
      fail(ErrorKind::corrupt_file, "{}: {} is absent, {} layers are announced", spec.file, norm_of(layer), spec.L);
  if (weights.has(norm_of(spec.L)))
    fail(ErrorKind::corrupt_file, "{}: {} is there, only {} layers are announced", spec.file, norm_of(spec.L), spec.L);
}

}  // namespace hearth::model
