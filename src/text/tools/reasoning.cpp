#include "text/tools/reasoning.h"

#include <array>

#include "text/tokenizer.h"
#include "text/tools/argument_writer.h"

namespace hearth::text {
namespace {

struct Family {
  std::string_view open, close;
  std::string_view piece;  // the token that starts it
  bool anywhere;
};
constexpr std::array<Family, 3> kFamilies = {{
    {"<|channel>thought", "<channel|>", "<|channel>", true},  // Gemma 4
    {"[THINK]", "[/THINK]", "[THINK]", true},                 // Magistral
    {"<think>", "</think>", "<think>", false},                // Qwen3, DeepSeek R1, MiniCPM5, ...
}};

ReasoningMarkers markers_of(const Family& family) {
  return {.open = std::string(family.open), .close = std::string(family.close), .anywhere = family.anywhere};
}

}  // namespace

std::optional<ReasoningMarkers> choose_reasoning(std::string_view source,
                                                 const std::function<bool(std::string_view)>& has_piece) {
  for (const Family& family : kFamilies)
    if (source.find(family.piece) != std::string_view::npos && source.find(family.close) != std::string_view::npos)
      return markers_of(family);
  for (const Family& family : kFamilies)
    if (has_piece(family.piece) && has_piece(family.close)) return markers_of(family);
  return std::nullopt;
}

std::optional<ReasoningMarkers> choose_reasoning(std::string_view source, const Tokenizer& tokenizer) {
  return choose_reasoning(source, [&](std::string_view piece) { return tokenizer.id_of(piece).has_value(); });
}

bool opens_reasoning(const ReasoningMarkers& markers, std::string_view prompt) {
  while (!prompt.empty() && tools::is_blank(prompt.back())) prompt.remove_suffix(1);
  return prompt.ends_with(markers.open);
}

}  // namespace hearth::text
