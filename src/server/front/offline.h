// `hearth serve --offline` (reliability.md R-33): a process that cannot call anybody.
#pragma once

namespace hearth::server {

// From here on neither this process nor what it starts can make a socket of the network, only Unix ones; those that are
// there, listeners say, and what they accept stay in use. Cannot be taken back. Throws Error{io} when the kernel
// refuses.
void leave_network();

}  // namespace hearth::server
