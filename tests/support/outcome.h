// What a call does, as text: for tests of exact messages.
#pragma once
#include <string>

#include "base/error.h"

namespace hearth::test {

// "<kind>: <sentence>" of the Error that `call` throws; "accepted" without one.
template <class Call>
std::string outcome(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(name_of(e.kind())) + ": " + e.what();
  }
  return "accepted";
}

}  // namespace hearth::test
