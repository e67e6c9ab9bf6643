// File descriptors that this process may have (RLIMIT_NOFILE).
#pragma once
#include <cstddef>

namespace hearth::cli {

// For a server with so many connections: those, the refusals beside them, what it and its workers hold.
size_t descriptors_for(size_t connections);

// Raises the soft limit to `wanted`, or as far as the hard limit lets it; never lowers it. What holds now.
size_t allow_descriptors(size_t wanted);

}  // namespace hearth::cli
