// Sampling fields of requests, flags and generation_config.json to the sampler's options.
#pragma once
#include <cstdint>

#include "base/json.h"
#include "decode/sampler.h"

namespace hearth::server {

// Fields by the names of spec server 3.2; the first object that has one decides, what neither has is built in
// (temperature 0.7, all filters off). Throws Error{invalid_argument} naming the field, its value and what is allowed.
decode::SamplerOptions sampler_options(const json::Object& request, const json::Object& defaults, int64_t V);

}  // namespace hearth::server
