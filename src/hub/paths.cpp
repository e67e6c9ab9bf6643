#include "hub/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace hearth::hub {
namespace fs = std::filesystem;
namespace {

std::optional<std::string> non_empty(const Env& env, const std::string& name) {
  std::optional<std::string> value = env(name);
  if (value && value->empty()) value.reset();
  return value;
}

// The XDG rule: a relative path in the variable is ignored.
fs::path xdg_folder(const Env& env, const std::string& name, const char* below_home) {
  const std::optional<std::string> value = non_empty(env, name);
  if (value && fs::path(*value).is_absolute()) return fs::path(*value) / "hearth";
  return home_directory(env) / below_home / "hearth";
}

}  // namespace

Env process_env() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

fs::path home_directory(const Env& env) {
  if (const auto home = non_empty(env, "HOME")) return *home;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found && found->pw_dir)
    return found->pw_dir;
  fail(ErrorKind::not_found, "no home directory: HOME is not set and user {} has no entry in the password table",
       getuid());
}

fs::path expand_home(const std::string& path, const Env& env) {
  if (path == "~") return home_directory(env);
  if (path.starts_with("~/")) return home_directory(env) / path.substr(2);
  return path;
}

fs::path hub_cache(const Env& env) {
  if (const auto cache = non_empty(env, "HF_HUB_CACHE")) return expand_home(*cache, env);
  if (const auto home = non_empty(env, "HF_HOME")) return expand_home(*home, env) / "hub";
  return home_directory(env) / ".cache/huggingface/hub";
}

fs::path config_folder(const Env& env) { return xdg_folder(env, "XDG_CONFIG_HOME", ".config"); }
fs::path data_folder(const Env& env) { return xdg_folder(env, "XDG_DATA_HOME", ".local/share"); }
fs::path state_folder(const Env& env) { return xdg_folder(env, "XDG_STATE_HOME", ".local/state"); }
fs::path cache_folder(const Env& env) { return xdg_folder(env, "XDG_CACHE_HOME", ".cache"); }
fs::path runtime_folder(const Env& env) {
  const std::string base = env("XDG_RUNTIME_DIR").value_or("");
  return base.empty() ? state_folder(env) / "run" : fs::path(base) / "hearth";
}

}  // namespace hearth::hub
