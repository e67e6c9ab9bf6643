#include "server/worker/reasoning_constraint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "server/request_error.h"

namespace hearth::server {

ReasoningConstraint::ReasoningConstraint(const PromptModel& model, text::AnswerOptions options,
                                         std::optional<int64_t> budget, std::shared_ptr<decode::Constraint> inner,
                                         Inner sees)
    : model_(model),
      markup_{.calls = !options.tools.empty(), .reasoning = true},
      meter_(std::move(options)),
      budget_(budget),
      inner_(std::move(inner)),
      sees_(sees) {
  HEARTH_CHECK(!budget || !model.closers.empty(), "a budget of reasoning that nothing can close");
  check_budget();
}

// A closing marker that the model has begun is completed.
void ReasoningConstraint::check_budget() {
  if (budget_ && meter_.inside() && meter_.tokens() >= *budget_) forced_ = model_.closers[meter_.closing()];
}

void ReasoningConstraint::apply(std::span<float> logits) {
  if (forced_.empty()) {
    if (inner_rules()) inner_->apply(logits);
    return;
  }
  std::ranges::fill(logits, -std::numeric_limits<float>::infinity());
  logits[static_cast<size_t>(forced_.front())] = 0;
}

void ReasoningConstraint::accept(int32_t id) {
  const bool told = inner_rules();
  meter_.push(answer_bytes(model_, id, false, markup_));
  if (told) inner_->accept(id);
  if (!forced_.empty()) forced_ = forced_.subspan(1);
  if (forced_.empty()) check_budget();
}

std::shared_ptr<decode::Constraint> while_thinking(const Generation& g, const PromptModel& model, const Prompt& prompt,
                                                   Calls calls, AnswerGrammars::Made held) {
  std::optional<text::AnswerOptions> parsed = answer_options(g, model, prompt, calls);
  const bool reasons = parsed && parsed->reasoning;
  if (!reasons || !(g.reasoning_budget || held.waits_for_calls)) return std::move(held.constraint);
  if (g.reasoning_budget && model.closers.empty())
    throw RequestError("reasoning_budget", fmt::format("reasoning_budget: {} has no tokens that spell {}", model.name,
                                                       model.reasoning->close));
  using Inner = ReasoningConstraint::Inner;
  return std::make_shared<ReasoningConstraint>(model, std::move(*parsed), g.reasoning_budget,
                                               std::move(held.constraint),
                                               held.waits_for_calls ? Inner::sees_answer : Inner::sees_all);
}

}  // namespace hearth::server
