// What this CPU gives: read bandwidth by working set, peaks of the dot products, cost of meeting (spec cpu-probes).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/team.h"

namespace hearth::probe {

// Bytes a second of a plain read of `bytes` of memory in all, split between `threads` members; median of `runs`.
struct ReadRate {
  int threads = 1;
  int64_t bytes = 0;
  double gbps = 0, spread = 0;  // spread: (p90 - p10) / median
};
ReadRate read_rate(Team& team, int threads, int64_t bytes, int runs = 9);

// Multiply and add count 2. Chains stay in registers.
struct Peak {
  std::string name;      // "fp32 fma 256", "int8 dot 512", ...
  double gops_core = 0;  // one core
  double gops_all = 0;   // all members of the team at once
};
std::vector<Peak> peaks(Team& team);

struct TeamCost {
  double barrier_ns = 0, fork_join_ns = 0;
};
TeamCost team_cost(Team& team);

double clock_ghz();  // from a chain of dependent adds

}  // namespace hearth::probe
