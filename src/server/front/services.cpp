#include "server/front/services.h"

#include <algorithm>
#include <iterator>

namespace hearth::server {

void Counters::Histogram::add(double seconds, int64_t times) {
  const auto* bound = std::lower_bound(std::begin(kBounds), std::end(kBounds), seconds);
  buckets[bound - std::begin(kBounds)] += times;
  sum += seconds * static_cast<double>(times);
  count += times;
}

void Counters::count(const std::string& route, int status) {
  const std::lock_guard lock(mutex);
  ++requests[{route, status}];
}

void Counters::count(const std::string& route, const Problem& problem) {
  count(route, problem.status);
  if (const Limit* limit = find_limit(problem.limit)) count(limit->id);
}

}  // namespace hearth::server
