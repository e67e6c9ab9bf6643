// Bytes of tokens to text, piece by piece.
#pragma once
#include <string>
#include <string_view>

namespace hearth::text {

// Holds bytes back while they form an incomplete UTF-8 sequence; what can become none is U+FFFD, one for each maximal
// invalid subpart (Unicode 3.9, as Python's bytes.decode(errors="replace")). So all pieces together are the same text
// however the bytes are cut. At most three bytes are held. One sequence per object, one thread at a time.
class Detokenizer {
 public:
  // The text that these bytes complete; valid UTF-8, perhaps empty.
  std::string push(std::string_view bytes);
  // The end: an unfinished sequence becomes one U+FFFD. Ready for a new text afterwards.
  std::string finish();

  size_t bytes_held() const { return held_.size(); }

 private:
  std::string held_;
};

}  // namespace hearth::text
