// What this machine gives at best, for a look at how near a model comes to it: the two ceilings of the roofline model
// (Williams et al. 2009).
#pragma once
#include <cstdint>
#include <string>

namespace hearth::cli {

struct Roofline {
  double read_gbps = 0;  // of a plain read of as many bytes as a token takes
  std::string peak;      // the fastest dot product, by name: "int8 dot 512"
  double peak_gops = 0;  // of all threads, from registers
};

// Takes some tenths of a second, and up to 512 MB meanwhile; bytes: what a decoded token reads. Throws as Team and
// probe::read_rate do.
Roofline measure_roofline(int threads, int64_t bytes);

}  // namespace hearth::cli
