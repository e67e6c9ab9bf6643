// Memory that cannot be had, as an Error like any other: one sentence and one conversion, for front and worker.
#pragma once
#include <new>

#include "server/request_error.h"

namespace hearth::server {

// What std::bad_alloc is told as: ClientError{out_of_memory}. Made at the program's start, so to say it costs nothing.
// Any thread.
const ClientError& no_memory();

// Calls tell(error), and returns what it does, for the exception that is handled where this is called: an Error, or
// std::bad_alloc, which is no_memory(). Any other goes on. Any thread.
template <class Tell>
auto with_error_at_hand(const Tell& tell) {
  try {
    throw;
  } catch (const Error& error) {
    return tell(error);
  } catch (const std::bad_alloc&) {
    return tell(no_memory());
  }
}

}  // namespace hearth::server
