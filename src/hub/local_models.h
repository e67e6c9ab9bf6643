// The models of the store that can be loaded.
#pragma once
#include <vector>

#include "hub/store.h"

namespace hearth::hub {

// Every model of Store::list() that is whole, as Store::find() gives it by FoundModel::name: one a repository, or one a
// .gguf file where there are several. Opens no model file.
std::vector<FoundModel> local_models(const Store& store);

}  // namespace hearth::hub
