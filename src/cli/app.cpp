#include "cli/app.h"

namespace hearth::cli {

int run(int, char**) { return 0; }

}  // namespace hearth::cli
