// Where the work of one request ends, whatever happens in it: the thread goes on with the others'.
#pragma once
#include <new>

#include "base/error.h"

namespace hearth::server {

// Runs work(). What it throws, memory that cannot be had too, goes to refuse(error), which ends the request.
template <class Work, class Refuse>
void guarded(const Work& work, const Refuse& refuse) {
  try {
    work();
  } catch (const Error& error) {
    refuse(error);
  } catch (const std::bad_alloc&) {
    refuse(Error(ErrorKind::out_of_memory, "the request could not get the memory it needs"));
  }
}

}  // namespace hearth::server
