// What json::parse and json::visit throw for values in each other beyond ParseLimits::depth. Whoever set the bound may
// have a name for it (LimitError).
#pragma once
#include "base/error.h"

namespace hearth::json {

class TooDeep : public Error {  // corrupt_file
 public:
  using Error::Error;
};

}  // namespace hearth::json
