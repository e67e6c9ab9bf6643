#include "text/stop.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/template/unicode.h"

namespace hearth::text {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (stops_.size() > kStopsMax)
    fail(ErrorKind::invalid_argument, "{} stop strings, at most {} are allowed", stops_.size(), kStopsMax);
  states_.emplace_back();
  for (size_t i = 0; i < stops_.size(); ++i) {
    const std::string& s = stops_[i];
    if (s.empty() || s.size() > kStopBytesMax)
      fail(ErrorKind::invalid_argument, "stop string {} has {} bytes, 1 to {} are allowed", i + 1, s.size(),
           kStopBytesMax);
    if (!is_utf8(s)) fail(ErrorKind::invalid_argument, "stop string {} is not UTF-8", i + 1);
    int state = 0;
    for (const char c : s) {
      const auto byte = static_cast<unsigned char>(c);
      if (const auto next = child(state, byte)) {
        state = *next;
        continue;
      }
      const int made = static_cast<int>(states_.size());
      State fresh;
      fresh.depth = states_[static_cast<size_t>(state)].depth + 1;
      states_.push_back(std::move(fresh));
      states_[static_cast<size_t>(state)].next.emplace_back(byte, made);
      state = made;
    }
    if (!states_[static_cast<size_t>(state)].match) states_[static_cast<size_t>(state)].match = i;
  }
  // Breadth first, so that the shorter suffixes are finished before those that point to them.
  std::vector<int> queue{0};
  for (size_t at = 0; at < queue.size(); ++at) {
    const int parent = queue[at];
    for (const auto& [byte, node] : states_[static_cast<size_t>(parent)].next) {
      State& s = states_[static_cast<size_t>(node)];
      if (parent != 0) s.fail = step(states_[static_cast<size_t>(parent)].fail, byte);
      if (!s.match) s.match = states_[static_cast<size_t>(s.fail)].match;
      queue.push_back(node);
    }
  }
}

std::optional<int> StopMatcher::child(int state, unsigned char c) const {
  for (const auto& [byte, next] : states_[static_cast<size_t>(state)].next)
    if (byte == c) return next;
  return std::nullopt;
}

int StopMatcher::step(int state, unsigned char c) const {
  for (;;) {
    if (const auto next = child(state, c)) return *next;
    if (state == 0) return 0;
    state = states_[static_cast<size_t>(state)].fail;
  }
}

StopMatcher::Result StopMatcher::push(std::string_view text) {
  Result r{.emit = {}, .stopped = stopped(), .which = which_};
  if (r.stopped) return r;
  for (const char c : text) {
    state_ = step(state_, static_cast<unsigned char>(c));
    held_ += c;
    const State& s = states_[static_cast<size_t>(state_)];
    const size_t keep = s.match ? stops_[*s.match].size() : s.depth;
    if (held_.size() > keep) {
      r.emit.append(held_, 0, held_.size() - keep);
      held_.erase(0, held_.size() - keep);
    }
    if (!s.match) continue;
    held_.clear();
    which_ = s.match;
    r.stopped = true;
    r.which = which_;
    return r;
  }
  return r;
}

std::string StopMatcher::finish() {
  std::string rest = std::move(held_);
  held_.clear();
  state_ = 0;
  which_.reset();
  return rest;
}

}  // namespace hearth::text
