#include "text/tools/bare_call.h"

#include <array>
#include <utility>

namespace hearth::text::tools {
namespace {

// The longer one of two that begin alike comes first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kAround = {
    {{"```json", "```"}, {"```", "```"}, {"<tools>", "</tools>"}}};

}  // namespace

bool BareCall::push(char c) {
  text_ += c;
  switch (state_) {
    case State::start:
      if (is_blank(c)) return true;
      state_ = State::open;
      [[fallthrough]];
    case State::open:
      if (c == '{' || is_blank(c)) {
        const bool alone = word_.empty();
        for (const auto& [open, close] : kAround)
          if (open == word_) close_ = close;
        if (!alone && close_.empty()) return false;
        if (c != '{') return true;
        call_->begin(1);
        state_ = State::object;
        return true;
      }
      if (!close_.empty()) return false;
      word_ += c;
      for (const auto& [open, close] : kAround)
        if (open.starts_with(word_)) return true;
      return false;
    case State::object: {
      const CallStep step = call_->push(c);
      if (step == CallStep::failed) return false;
      if (step == CallStep::ended_closed) state_ = close_.empty() ? State::end : State::close;
      word_.clear();
      return true;
    }
    case State::close:
      if (word_.empty() && is_blank(c)) return true;
      word_ += c;
      if (word_ == close_) state_ = State::end;
      return close_.starts_with(word_);
    case State::end: return is_blank(c);
  }
  return false;
}

}  // namespace hearth::text::tools
