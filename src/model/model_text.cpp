#include "model/model_text.h"

#include <ctime>
#include <utility>

#include "base/error.h"

namespace hearth::model {

ModelText::ModelText(const Model& model, std::string name)
    : name_(name.empty() ? model.path().string() : std::move(name)), tokenizer_(model.tokenizer()) {
  const Templates& templates = model.templates();
  const auto find = [&](const std::string& key) -> std::optional<text::ChatTemplate> {
    const auto found = templates.find(key);
    if (found == templates.end()) return std::nullopt;
    return text::ChatTemplate(found->second, "template " + key + " of " + name_);
  };
  chat_ = find("default");
  tool_use_ = find("tool_use");
}

text::Rendered ModelText::render(const json::Value& conversation, bool add_generation_prompt,
                                 const text::jinja::RenderLimits& limits) const {
  text::ChatInput input;
  input.add_generation_prompt = add_generation_prompt;
  input.bos_token = tokenizer_.bos_text();
  input.eos_token = tokenizer_.eos_text();
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  if (::localtime_r(&now, &local)) input.now = local;
  if (conversation.array()) {
    input.messages = conversation;
  } else if (const json::Object* object = conversation.object()) {
    if (!object->contains("messages")) fail(ErrorKind::invalid_argument, "the conversation has no messages");
    for (const auto& [key, value] : *object) {
      if (key == "messages") input.messages = value;
      else if (key == "tools") input.tools = value;
      else if (key == "documents") input.documents = value;
      else if (key == "add_generation_prompt") input.add_generation_prompt = value.as_bool(key);
      else input.extra[key] = value;
    }
  } else {
    fail(ErrorKind::invalid_argument, "the conversation is {}: it must be an array of messages, or an object with one",
         conversation.type_name());
  }
  if (!chat_) fail(ErrorKind::invalid_argument, "{} has no chat template", name_);
  const bool with_tools = input.tools.array() && input.tools.array()->size() > 0;
  return (with_tools && tool_use_ ? *tool_use_ : *chat_).render_marked(input, limits);
}

std::vector<int32_t> ModelText::encode_rendered(const text::Rendered& rendered, bool around) const {
  return tokenizer_.encode(rendered.text, {.parse_special = true, .add_special = around, .quoted = rendered.quoted});
}

std::vector<int32_t> ModelText::encode_parsed(const std::string& text) const {
  return tokenizer_.encode(text, {.parse_special = true, .add_special = true});
}

std::vector<int32_t> ModelText::encode_text(const std::string& text) const {
  return tokenizer_.encode(text, {.parse_special = false, .add_special = true});
}

}  // namespace hearth::model
