#include "cli/progress.h"

#include <cstdio>

#include "cli/units.h"

namespace hearth::cli {

Progress::Progress(const Context& context, std::string label, Unit unit)
    : context_(context), label_(std::move(label)), unit_(unit) {}

Progress::~Progress() {
  if (open_) std::fputs("\n", stderr);
}

void Progress::show(int64_t done, int64_t total) {
  constexpr auto kQuietAtFirst = std::chrono::seconds(1);  // quick work needs no line
  if (std::chrono::steady_clock::now() - start_ < kQuietAtFirst) return;
  const int64_t percent = total > 0 ? done * 100 / total : 100;
  const int64_t step = context_.err_is_terminal() ? 1 : 10;
  if (context_.quiet() || (percent_ >= 0 && percent / step == percent_ / step)) return;
  percent_ = percent;
  const auto shown = [&](int64_t n) { return unit_ == Unit::bytes ? show_size(n) : fmt::format("{}", n); };
  std::string text = fmt::format("{} {:3}%", label_, percent);
  if (unit_ != Unit::share) text += fmt::format("  {} of {}", shown(done), shown(total));
  if (context_.err_is_terminal()) {
    std::fputs(("\r\x1b[K" + text).c_str(), stderr);
    open_ = true;
  } else {
    std::fputs((text + "\n").c_str(), stderr);
  }
  std::fflush(stderr);
}

}  // namespace hearth::cli
