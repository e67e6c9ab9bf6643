// Who listens on a TCP port of this machine, for the sentence that says why we cannot.
#pragma once
#include <string>

namespace hearth::net {

// "process 4711 (nginx)"; empty when nobody listens there, or when its descriptors are not ours to read. Reads
// /proc/net/tcp, tcp6 and the descriptors of every process of this user (of all, for root).
std::string owner_of_port(int port);

}  // namespace hearth::net
