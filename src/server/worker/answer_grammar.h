// What an answer is held to: a request's format, its tools, or both, as the engine's constraint (spec server 25-29).
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "decode/constraint.h"
#include "server/generation.h"
#include "server/worker/prompt.h"
#include "text/grammar/constraint.h"

namespace hearth::server {

// Prompt thread only: grammars of agents come again with every turn, so the last ones are kept.
class AnswerGrammars {
 public:
  // Reads the vocabulary once: some 100 ms for 152 k pieces.
  explicit AnswerGrammars(const PromptModel& model);

  struct Made {
    std::shared_ptr<decode::Constraint> constraint;  // null: the answer is free
    bool shapes_calls = false;                       // calls that are begun will be whole: they can be streamed
    bool waits_for_calls = false;                    // it lets everything pass until a call is begun
  };
  // One constraint for each answer. Throws Error{invalid_argument} for a format that cannot be held to exactly.
  Made make(const Generation& generation, const Prompt& prompt);

 private:
  enum class Scope : uint8_t {
    whole_answer,   // calls, or a format
    behind_opener,  // calls
    free_or_calls,  // free text, or calls from where one begins
  };
  text::GrammarPtr compiled(const Generation& generation, const Prompt& prompt, Scope scope);
  text::GrammarPtr fresh(const Generation& generation, const Prompt& prompt, std::span<const text::ToolSpec> tools,
                         Scope scope) const;
  text::GrammarPtr kept(const std::string& key, const std::function<text::GrammarPtr()>& compile);

  const PromptModel& model_;
  std::shared_ptr<const text::VocabularyIndex> vocabulary_;
  std::deque<std::pair<std::string, text::GrammarPtr>> kept_;
};

}  // namespace hearth::server
