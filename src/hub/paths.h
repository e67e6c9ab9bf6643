// Where things live: environment to folders (dependencies 5.2). Pure but for home_directory().
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace hearth::hub {

// Value of an environment variable; nullopt when unset. An empty value counts as unset for every path below.
using Env = std::function<std::optional<std::string>(const std::string& name)>;
Env process_env();

std::filesystem::path home_directory(const Env& env);  // HOME, else the password table; Error{not_found} without either

std::filesystem::path hub_cache(const Env& env);       // HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub
std::filesystem::path config_folder(const Env& env);   // XDG_CONFIG_HOME/hearth, else ~/.config/hearth
std::filesystem::path data_folder(const Env& env);     // XDG_DATA_HOME/hearth, else ~/.local/share/hearth
std::filesystem::path state_folder(const Env& env);    // XDG_STATE_HOME/hearth, else ~/.local/state/hearth
std::filesystem::path cache_folder(const Env& env);    // XDG_CACHE_HOME/hearth, else ~/.cache/hearth
std::filesystem::path runtime_folder(const Env& env);  // XDG_RUNTIME_DIR/hearth, else state_folder()/run

// "~" or "~/rest" with the home directory put in; anything else as it is.
std::filesystem::path expand_home(const std::string& path, const Env& env);

}  // namespace hearth::hub
