// The two kinds of files behind Model::open.
#pragma once
#include "model/model.h"

namespace hearth::model {

// Before anything is built from the number of layers (a program of thousands takes seconds): the file holds each of
// them, and none beyond. Throws Error{corrupt_file} naming the first layer that is absent or one too many.
void check_layers(const ModelSpec& spec, const WeightTable& weights);

std::unique_ptr<Model> open_gguf(const std::filesystem::path& path);
std::unique_ptr<Model> open_dir(const std::filesystem::path& path);

}  // namespace hearth::model
