// What one answer may be: a grammar, a schema, tokens that must come (spec server 2.5, 2.6).
#pragma once
#include <cstdint>
#include <span>

namespace hearth::decode {

// State of one answer, called on the engine thread: apply, then accept of the id that was drawn. An Error that it
// throws ends its own row, nothing else; so does an apply that leaves no id.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // Ids that may not come next become -inf, before biases, penalties and everything else; the others stay as they are.
  //   logits  [V] of the model's head, which may be padded: ids without a piece are there too
  virtual void apply(std::span<float> logits) = 0;

  // The id is part of the answer now. An end id that ends the answer is not told.
  virtual void accept(int32_t id) = 0;

  // Nothing can follow: the answer ends, reason stop. Asked before the first draw and after each accept.
  virtual bool finished() const = 0;
};

}  // namespace hearth::decode
