// How model families mark reasoning in an answer (spec server 21).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::text {

class Tokenizer;

struct ReasoningMarkers {
  std::string open, close;
  // Reasoning may begin anywhere in an answer (the markers are control tokens), else only ahead of its text: an answer
  // may speak of <think>.
  bool anywhere = false;

  bool operator==(const ReasoningMarkers&) const = default;
};

// By the markers that the template spells, else by the vocabulary's. Absent: the model has none. Any thread.
std::optional<ReasoningMarkers> choose_reasoning(std::string_view template_source, const Tokenizer& tokenizer);
std::optional<ReasoningMarkers> choose_reasoning(std::string_view template_source,
                                                 const std::function<bool(std::string_view)>& has_piece);

// Whether a rendered prompt ends inside reasoning: its last bytes but white space are the opening marker.
bool opens_reasoning(const ReasoningMarkers& markers, std::string_view prompt);

}  // namespace hearth::text
