#include "cli/browser.h"

#include "cli/programs.h"

namespace hearth::cli {

std::vector<std::string> page_opener(const hub::Env& env, const std::string& url) {
  const std::string named = env("BROWSER").value_or("");
  for (const std::string& name : {named, std::string("xdg-open")}) {
    if (name.empty()) continue;
    const std::filesystem::path path(name);
    const std::filesystem::path program = path.is_absolute() ? path : find_program(env, name);
    if (!program.empty() && is_executable(program)) return {program.string(), url};
  }
  return {};
}

bool has_display(const hub::Env& env) {
  return !env("DISPLAY").value_or("").empty() || !env("WAYLAND_DISPLAY").value_or("").empty();
}

}  // namespace hearth::cli
