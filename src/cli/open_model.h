// The MODEL of a command line, found by name.
#pragma once
#include <string_view>

#include "cli/context.h"
#include "hub/store.h"

namespace hearth::cli {

// hub::Store::find of the positional MODEL. Throws Error{invalid_argument} for a name with a part that is none of the
// model's files (adapters come by a flag), and for an address.
hub::FoundModel find_model(const Context& context, std::string_view positional = "MODEL");

}  // namespace hearth::cli
