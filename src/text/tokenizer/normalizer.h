// Text to text: the steps of a normalizer, compiled.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

// Immutable; any thread.
class Normalizer {
 public:
  // Throws Error{corrupt_file} for a broken character map, Error{invalid_argument} for a pattern that does not compile.
  Normalizer(const std::vector<NormalizerStep>& steps, std::string_view what);
  ~Normalizer();

  bool empty() const { return steps_.empty(); }

  // Broken bytes pass through unchanged. Throws Error{invalid_argument} when the text would grow beyond 64 times its
  // size and 1 MiB.
  std::string apply(std::string_view text) const;

  // The same. `quoted` (ascending, disjoint stretches of text) becomes the stretches of the result that are made of
  // them; a character made of quoted and other text counts as quoted.
  std::string apply(std::string_view text, std::vector<ByteRange>& quoted) const;

  class Step;
  struct Tracked;

 private:
  void run(Tracked& text) const;

  std::vector<std::unique_ptr<const Step>> steps_;
  std::string what_;
};

}  // namespace hearth::text
