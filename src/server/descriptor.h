// Open files that several own: who sends them keeps them open until they are on their way.
#pragma once
#include <memory>
#include <vector>

#include "net/listen.h"

namespace hearth::server {

using net::Descriptor;
using Descriptors = std::shared_ptr<const std::vector<Descriptor>>;

}  // namespace hearth::server
