// One line of progress on stderr: redrawn in place on a terminal, else a line per 10 %. Nothing with --quiet, nor in
// the first second.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "cli/context.h"

namespace hearth::cli {

class Progress {
 public:
  enum class Unit { bytes, count, share };  // share: of work, shown in per cent alone
  Progress(const Context& context, std::string label, Unit unit = Unit::bytes);
  ~Progress();  // ends the line
  void show(int64_t done, int64_t total);

 private:
  const Context& context_;
  std::string label_;
  Unit unit_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t percent_ = -1;
  bool open_ = false;
};

}  // namespace hearth::cli
