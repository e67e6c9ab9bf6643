// What a thinking model's answer is held to while it reasons: a budget of tokens (spec server 20), and nothing that is
// meant for the answer alone.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "decode/constraint.h"
#include "server/worker/answer_grammar.h"
#include "server/worker/prompt.h"
#include "text/tools/reasoning_meter.h"

namespace hearth::server {

// Engine thread. With `budget` tokens of reasoning the closing marker's ids are the only ones that may follow, one
// after the other; reasoning that begins again behind them is closed at once.
class ReasoningConstraint final : public decode::Constraint {
 public:
  // Of the inner constraint, which may be null: whether it is told of reasoning, too.
  enum class Inner : uint8_t { sees_all, sees_answer };

  // closers: PromptModel::closers of the markers in `options`, not empty where there is a budget; the model must
  // outlive it.
  ReasoningConstraint(const PromptModel& model, text::AnswerOptions options, std::optional<int64_t> budget,
                      std::shared_ptr<decode::Constraint> inner, Inner sees);

  void apply(std::span<float> logits) override;
  void accept(int32_t id) override;
  bool finished() const override { return inner_ && inner_->finished(); }

 private:
  bool inner_rules() const { return inner_ && !(sees_ == Inner::sees_answer && meter_.inside()); }
  void check_budget();

  const PromptModel& model_;
  Markup markup_;
  text::ReasoningMeter meter_;
  std::optional<int64_t> budget_;
  std::shared_ptr<decode::Constraint> inner_;
  Inner sees_;
  std::span<const int32_t> forced_;  // ids that must come now
};

// The constraint of an answer that may reason before it does what `held` says; what `held` has where nothing is to be
// added. Throws RequestError where the request has a budget that cannot be kept.
std::shared_ptr<decode::Constraint> while_thinking(const Generation& generation, const PromptModel& model,
                                                   const Prompt& prompt, Calls calls, AnswerGrammars::Made held);

}  // namespace hearth::server
