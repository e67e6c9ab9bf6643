// Stop strings over streamed text.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::text {

// Withholds the first match of any stop string and all behind it: the match that ends first; of those that end
// together, the longest. Text that could still become a match (a proper prefix of a stop string) is held back and comes
// with a later push or with finish(), so the emitted text is the same for every way of cutting the input. Linear in the
// text (Aho and Corasick 1975). One sequence per object, one thread at a time.
class StopMatcher {
 public:
  static constexpr size_t kStopsMax = 64;
  static constexpr size_t kStopBytesMax = 4096;

  struct Result {
    std::string emit;
    bool stopped = false;
    std::optional<size_t> which;  // index of the stop string found
  };

  // Throws Error{invalid_argument}: a stop string that is empty, too long or not UTF-8, or too many of them.
  explicit StopMatcher(std::vector<std::string> stops);

  // `text` ends at a character's end (as Detokenizer's pieces do). After a stop nothing is emitted any more.
  Result push(std::string_view text);
  // The held text; empty after a stop. Ready for a new text afterwards.
  std::string finish();

  bool stopped() const { return which_.has_value(); }

 private:
  struct State {
    std::vector<std::pair<unsigned char, int>> next;
    int fail = 0;
    size_t depth = 0;
    std::optional<size_t> match;  // the longest stop string that ends here
  };
  std::optional<int> child(int state, unsigned char c) const;
  int step(int state, unsigned char c) const;

  std::vector<std::string> stops_;
  std::vector<State> states_;
  int state_ = 0;
  std::string held_;  // the last states_[state_].depth bytes
  std::optional<size_t> which_;
};

}  // namespace hearth::text
