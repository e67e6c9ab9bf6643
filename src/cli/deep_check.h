// The checks of `hearth doctor --deep` that read a model's files from end to end.
#pragma once
#include <vector>

#include "cli/context.h"
#include "cli/finding.h"
#include "hub/store.h"

namespace hearth::cli {

// Digests of the stored files against their names, every scale and plain value of the weights (NaN, infinite), and
// packed weights against a fresh repack. Progress on stderr. A model that cannot be opened is one finding that fails.
std::vector<Finding> deep_check(const Context& context, const hub::FoundModel& found);

}  // namespace hearth::cli
