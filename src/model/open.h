// The two kinds of files behind Model::open.
#pragma once
#include "model/model.h"

namespace hearth::model {

std::unique_ptr<Model> open_gguf(const std::filesystem::path& path);
std::unique_ptr<Model> open_dir(const std::filesystem::path& path);

}  // namespace hearth::model
