// Statistics of an answer as JSON and as the last line of stderr (spec models 41).
#pragma once
#include "cli/context.h"
#include "decode/complete.h"

namespace hearth::cli {

json::Object stats_json(const decode::GenerateStats& stats, double load_ms);
std::string stats_line(const decode::GenerateStats& stats, double load_ms);

}  // namespace hearth::cli
