#include "cli/clients.h"

#include <array>

#include "base/json.h"

namespace hearth::cli {
namespace {

// The variable that holds the key for clients that may choose its name: the one that sets --api-key of hearth itself.
constexpr const char* kKeyVariable = "HEARTH_API_KEY";

// The end of an answer that a client may count on.
int64_t answer_room(const Served& served) { return served.context / 4; }

json::Object object(std::initializer_list<std::pair<const char*, json::Value>> members) {
  json::Object o;
  for (const auto& [key, value] : members) o[key] = value;
  return o;
}

// All model names that it asks for mean ours; what would lead to another provider goes.
LaunchPlan claude(const Served& served) {
  LaunchPlan plan;
  plan.set = {{"ANTHROPIC_BASE_URL", served.url}, {"ANTHROPIC_AUTH_TOKEN", served.key}};
  for (const char* name : {"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
                           "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"})
    plan.set.emplace_back(name, served.model);
  plan.set.emplace_back("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
  plan.set.emplace_back("CLAUDE_CODE_ATTRIBUTION_HEADER", "0");
  if (served.context > 0)
    for (const char* name : {"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"})
      plan.set.emplace_back(name, std::to_string(served.context));
  plan.unset = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"};
  return plan;
}

// Its -c takes TOML; a JSON string is a TOML string too.
LaunchPlan codex(const Served& served) {
  LaunchPlan plan;
  plan.set = {{kKeyVariable, served.key}};
  const auto set = [&](const std::string& key, const json::Value& value) {
    plan.arguments.push_back("-c");
    plan.arguments.push_back(key + "=" + json::dump(value));
  };
  set("model", served.model);
  set("model_provider", "hearth");
  set("model_providers.hearth.name", "hearth");
  set("model_providers.hearth.base_url", served.url + "/v1");
  set("model_providers.hearth.env_key", kKeyVariable);
  set("model_providers.hearth.wire_api", "responses");
  if (served.context > 0) set("model_context_window", served.context);
  return plan;
}

LaunchPlan opencode(const Served& served) {
  json::Object model = object({{"name", served.model}});
  if (served.context > 0) model["limit"] = object({{"context", served.context}, {"output", answer_room(served)}});
  const json::Object provider = object({
      {"npm", "@ai-sdk/openai-compatible"},
      {"name", "hearth"},
      {"options", object({{"baseURL", served.url + "/v1"}, {"apiKey", fmt::format("{{env:{}}}", kKeyVariable)}})},
      {"models", object({{served.model.c_str(), model}})},
  });
  const std::string name = "hearth/" + served.model;
  LaunchPlan plan;
  plan.set = {
      {kKeyVariable, served.key},
      {"OPENCODE_CONFIG_CONTENT",
       json::dump(object({{"model", name}, {"small_model", name}, {"provider", object({{"hearth", provider}})}}))}};
  return plan;
}

// With 16,384 positions or less it would sum the talk up after each turn: it keeps as many free. It takes a provider
// from an extension only; the file holds no key and lies in the folder of the server.
// Versions before 0.77 look "apiKey" up in the environment as it is, or take it as the key; later ones replace $NAME in
// it by what the environment holds. So the variable that is called "$HEARTH_API_KEY", dollar and all, gives both the
// key, whatever characters it has.
LaunchPlan pi(const Served& served) {
  const int64_t context = served.context > 0 ? served.context : 32'768;
  json::Array models, input;
  input.emplace_back("text");
  models.emplace_back(object({
      {"id", served.model},
      {"name", served.model},
      {"reasoning", false},
      {"input", input},
      {"cost", object({{"input", 0}, {"output", 0}, {"cacheRead", 0}, {"cacheWrite", 0}})},
      {"contextWindow", context},
      {"maxTokens", context / 4},
  }));
  const json::Object provider = object({
      {"name", "hearth"},
      {"baseUrl", served.url + "/v1"},
      {"apiKey", std::string("$") + kKeyVariable},
      {"api", "openai-completions"},
      {"models", models},
  });
  LaunchPlan plan;
  plan.set = {{kKeyVariable, served.key}};
  plan.file = served.folder / "pi-extension.js";
  plan.file_text = fmt::format(
      "process.env[\"${0}\"] = process.env[\"{0}\"];\nexport default (pi) => pi.registerProvider(\"hearth\", {1});\n",
      kKeyVariable, json::dump(provider));
  plan.arguments = {"--extension", plan.file.string(), "--provider", "hearth", "--model", served.model};
  return plan;
}

}  // namespace

std::span<const Client> clients() {
  static constexpr std::array kClients = {
      Client{"claude", "@anthropic-ai/claude-code", true, 65'536, claude},
      Client{"codex", "@openai/codex", true, 32'768, codex},
      Client{"opencode", "opencode-ai", true, 32'768, opencode},
      Client{"pi", "@earendil-works/pi-coding-agent", false, 32'768, pi},
  };
  return kClients;
}

std::string install_line(const Client& client) {
  return fmt::format("npm install -g {}{}", client.runs_scripts ? "" : "--ignore-scripts ", client.package);
}

}  // namespace hearth::cli
