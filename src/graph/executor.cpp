#include "graph/executor.h"

#include "base/error.h"

namespace hearth::graph {

std::string_view name_of(Numerics numerics) {
  switch (numerics) {
    case Numerics::parity: return "parity";
    case Numerics::deterministic: return "deterministic";
    case Numerics::fast: return "fast";
  }
  return "unknown";
}

Numerics parse_numerics(std::string_view name) {
  for (const Numerics n : {Numerics::parity, Numerics::deterministic, Numerics::fast})
    if (name == name_of(n)) return n;
  fail(ErrorKind::invalid_argument, "numerics \"{}\" is unknown; choose parity, deterministic or fast", name);
}

}  // namespace hearth::graph
