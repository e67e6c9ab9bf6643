// The words of a model: its tokenizer and chat templates, from an opened model file.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace hearth::model {

// Tokenizer and templates of an opened model.
class ModelText {
 public:
  // `name` is what errors call the model; empty: its path.
  explicit ModelText(const Model& model, std::string name = {});

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  bool has_template() const { return chat_.has_value(); }

  // The conversation as the model was trained on it; "tool_use" is the template when tools are given and there is one.
  // `conversation` is an array of messages, or an object with messages and perhaps tools, documents and further
  // variables of the template. Throws Error{invalid_argument}: no template, or what the template says.
  text::Rendered render(const json::Value& conversation, bool add_generation_prompt = true,
                        const text::jinja::RenderLimits& limits = {}) const;

  // Ids of a rendered conversation: special tokens that the template wrote count, their names in messages are plain
  // text; one BOS (models.md 31, 32). Without `around` nothing is put around the text.
  std::vector<int32_t> encode_rendered(const text::Rendered& rendered, bool around = true) const;
  // Ids of a person's text: names of special tokens in it are plain text.
  std::vector<int32_t> encode_text(const std::string& text) const;
  // Ids of a text in which a person asked for special tokens by name (--parse-special).
  std::vector<int32_t> encode_parsed(const std::string& text) const;

 private:
  std::string name_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_, tool_use_;
};

}  // namespace hearth::model
