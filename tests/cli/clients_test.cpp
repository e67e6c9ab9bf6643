// What `hearth launch` tells each client.
#include "cli/clients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"

namespace hearth::cli {
namespace {

LaunchPlan plan_of(std::string_view name, int64_t context = 40'960) {
  for (const Client& client : clients())
    if (client.name == name)
      return client.plan({.url = "http://127.0.0.1:8080",
                          .key = "secret-key",
                          .model = "org/a \"model\"@1",
                          .context = context,
                          .folder = "/run/hearth"});
  ADD_FAILURE() << name;
  return {};
}

std::string value_of(const LaunchPlan& plan, std::string_view name) {
  for (const auto& [key, value] : plan.set)
    if (key == name) return value;
  return {};
}

TEST(Clients, the_key_stands_in_the_environment_alone) {
  for (const Client& client : clients()) {
    const LaunchPlan plan = plan_of(client.name);
    int64_t times = 0;
    for (const auto& [name, value] : plan.set) times += value.find("secret-key") != std::string::npos;
    EXPECT_EQ(times, 1) << client.name;
    for (const std::string& word : plan.arguments) EXPECT_EQ(word.find("secret-key"), std::string::npos) << word;
    EXPECT_EQ(plan.file_text.find("secret-key"), std::string::npos) << client.name;
    EXPECT_EQ(plan.file.empty(), plan.file_text.empty()) << client.name;
    EXPECT_EQ(install_line(client).find("npm install -g "), 0u);
  }
}

TEST(Clients, claude_gets_the_server_without_v1_and_one_model_for_all_names) {
  const LaunchPlan plan = plan_of("claude");
  EXPECT_EQ(value_of(plan, "ANTHROPIC_BASE_URL"), "http://127.0.0.1:8080");
  for (const char* name : {"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
                           "ANTHROPIC_DEFAULT_OPUS_MODEL"})
    EXPECT_EQ(value_of(plan, name), "org/a \"model\"@1") << name;
  EXPECT_EQ(value_of(plan, "CLAUDE_CODE_AUTO_COMPACT_WINDOW"), "40960");
  EXPECT_NE(std::find(plan.unset.begin(), plan.unset.end(), "ANTHROPIC_API_KEY"), plan.unset.end());
  EXPECT_EQ(value_of(plan_of("claude", 0), "CLAUDE_CODE_AUTO_COMPACT_WINDOW"), "");
}

TEST(Clients, codex_gets_a_provider_in_toml_arguments) {
  const std::vector<std::string> words = plan_of("codex").arguments;
  const auto has = [&](std::string_view word) {
    const auto at = std::find(words.begin(), words.end(), word);
    return at != words.end() && at != words.begin() && *(at - 1) == "-c";
  };
  EXPECT_TRUE(has(R"(model="org/a \"model\"@1")"));
  EXPECT_TRUE(has(R"(model_provider="hearth")"));
  EXPECT_TRUE(has(R"(model_providers.hearth.base_url="http://127.0.0.1:8080/v1")"));
  EXPECT_TRUE(has(R"(model_providers.hearth.wire_api="responses")"));
  EXPECT_TRUE(has(R"(model_providers.hearth.env_key="HEARTH_API_KEY")"));
  EXPECT_TRUE(has("model_context_window=40960"));
}

TEST(Clients, opencode_gets_a_config_in_its_variable) {
  const json::Value config = json::parse(value_of(plan_of("opencode"), "OPENCODE_CONFIG_CONTENT"), "config");
  EXPECT_EQ(*config.get("model")->string(), "hearth/org/a \"model\"@1");
  const json::Value* provider = config.get("provider")->get("hearth");
  EXPECT_EQ(*provider->get("options")->get("baseURL")->string(), "http://127.0.0.1:8080/v1");
  EXPECT_EQ(*provider->get("options")->get("apiKey")->string(), "{env:HEARTH_API_KEY}");
  EXPECT_EQ(provider->get("models")->get("org/a \"model\"@1")->get("limit")->get("context")->as_int(""), 40'960);
}

TEST(Clients, pi_gets_an_extension_file) {
  const LaunchPlan plan = plan_of("pi");
  EXPECT_EQ(plan.file, "/run/hearth/pi-extension.js");
  EXPECT_EQ(plan.arguments[0], "--extension");
  EXPECT_EQ(plan.arguments[1], plan.file.string());
  EXPECT_TRUE(plan.file_text.starts_with("process.env[\"$HEARTH_API_KEY\"] = process.env[\"HEARTH_API_KEY\"];\n"));
  const size_t begin = plan.file_text.find(", {") + 2, end = plan.file_text.rfind(')');
  const json::Value provider = json::parse(plan.file_text.substr(begin, end - begin), "provider");
  EXPECT_EQ(*provider.get("apiKey")->string(), "$HEARTH_API_KEY");
  EXPECT_EQ(provider.get("models")->as_array("")[0].get("contextWindow")->as_int(""), 40'960);
}

}  // namespace
}  // namespace hearth::cli
