#include "cli/client_install.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/fs.h"
#include "cli/programs.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const Context& context, const Client& client) {
  return hub::data_folder(context.env()) / "clients" / client.name;
}

// npm's words for a registry that it cannot reach.
bool is_network_failure(const std::string& errors) {
  constexpr std::string_view kCodes[] = {"ENOTFOUND",   "EAI_AGAIN",    "ECONNREFUSED", "ECONNRESET",
                                         "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT",    "ENOTCACHED"};
  return std::ranges::any_of(kCodes, [&](std::string_view code) { return errors.find(code) != std::string::npos; });
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

fs::path installed_program(const Context& context, const Client& client) {
  return folder_of(context, client) / "node_modules" / ".bin" / client.name;
}

fs::path find_client(const Context& context, const Client& client) {
  const fs::path found = find_program(context.env(), client.name);
  if (!found.empty()) return found;
  const fs::path ours = installed_program(context, client);
  return is_executable(ours) ? ours : fs::path();
}

std::vector<std::string> install_command(const Context& context, const Client& client) {
  const fs::path npm = find_program(context.env(), "npm");
  if (npm.empty())
    fail(ErrorKind::not_found, "npm, which installs {}, is not on PATH: it comes with Node.js", client.name);
  std::vector<std::string> words = {npm.string(), "install",   "--prefix",         folder_of(context, client).string(),
                                    "--no-audit", "--no-fund", "--fetch-retries=1"};
  if (!client.runs_scripts) words.emplace_back("--ignore-scripts");
  words.emplace_back(client.package);
  return words;
}

fs::path install_client(const Context& context, const Client& client) {
  const std::vector<std::string> words = install_command(context, client);
  const fs::path folder = folder_of(context, client), program = installed_program(context, client);
  context.note("{} is installed from npm's registry into {}: {}", client.package, folder.string(),
               fmt::join(words, " "));
  io::real_fs().make_dirs(folder);
  const ProgramEnd end = run_program(words);
  if (end.code == 0 && is_executable(program)) return program;
  if (end.code == 0)
    fail(ErrorKind::io, "npm installed {}, but there is no program {}", client.package, program.string());
  if (is_network_failure(end.errors))
    fail(ErrorKind::io, "npm's registry cannot be reached, so {} is not installed; with a network, try again",
         client.name);
  fail(ErrorKind::io, "npm did not install {} (exit code {}): {}", client.package, end.code, last_line(end.errors));
}

void remove_client(const Context& context, const Client& client) {
  const fs::path folder = folder_of(context, client);
  std::error_code error;
  if (!fs::exists(folder, error)) fail(ErrorKind::not_found, "{} is not installed in {}", client.name, folder.string());
  fs::remove_all(folder, error);
  if (error) fail(ErrorKind::io, "{}: {}", folder.string(), error.message());
  context.note("{} is removed from {}", client.name, folder.string());
}

}  // namespace hearth::cli
