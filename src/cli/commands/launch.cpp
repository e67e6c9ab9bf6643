#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/fs.h"
#include "cli/clients.h"
#include "cli/commands.h"
#include "cli/server_client.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "CLIENT", .help = "the program to start", .choices = "claude|codex|opencode|pi"},
    {.name = "ARGS", .help = "its own arguments, whatever they look like", .required = false, .repeat = true},
};
constexpr Flag kFlags[] = {
    {.name = "model",
     .kind = ValueKind::text,
     .value = "NAME",
     .help = "a model of the server (default: the one it serves)"},
    {.name = "api-key",
     .kind = ValueKind::text,
     .value = "KEY",
     .help = "the key that the server wants; better in HEARTH_API_KEY"},
    {.name = "print", .help = "prints environment and command as shell lines, and starts nothing"},
};

const Client& client_of(const std::string& name) {
  const auto found = std::find_if(clients().begin(), clients().end(), [&](const Client& c) { return c.name == name; });
  HEARTH_CHECK(found != clients().end(), "client {}", name);
  return *found;
}

// The server's default model, or the one that the name means there.
json::Value model_of(const Context& context, const std::optional<std::string>& name) {
  if (name) return ask_server(context, "GET", "/v1/models/" + path_escaped(*name), {});
  const json::Value list = ask_server(context, "GET", "/v1/models", {});
  for (const json::Value& model : list.get("data")->as_array("data"))
    if (model.get("serving")->as_bool("serving")) return model;
  fail(ErrorKind::not_found, "the server has no default model: --model names one of hearth ps");
}

// The key that clients are given: never the session token, which may do more than ask. Where none is needed, any word.
std::string client_key(const Context& context, const server::InstanceInfo& instance, std::string_view client) {
  const std::optional<std::string> given = context.args().text("api-key");
  const std::string key = given.value_or("local");
  if (call_server(instance, "GET", "/v1/models", key, {}).status != 401) return key;
  if (given) fail(ErrorKind::invalid_argument, "the server does not know the key of --api-key or HEARTH_API_KEY");
  fail(ErrorKind::invalid_argument, "the server wants a key: HEARTH_API_KEY=KEY hearth launch {}", client);
}

Served served(const Context& context, const Client& client) {
  const server::InstanceInfo instance = running_server(context);
  if (instance.url.starts_with("unix:"))
    fail(ErrorKind::invalid_argument,
         "the server listens on {}, which {} cannot reach: hearth serve MODEL --port 8080 gives it a port",
         instance.url.substr(5), client.name);
  const json::Value model = model_of(context, context.args().text("model"));
  Served served;
  served.url = instance.url;
  served.key = client_key(context, instance, client.name);
  served.model = model.get("id")->as_string("id");
  if (const json::Value* positions = model.get("context_window"); positions && positions->is_int())
    served.context = positions->as_int("context_window");
  served.folder = hub::runtime_folder(context.env());
  return served;
}

// The first executable file of that name on PATH; empty: none. Entries that are not absolute do not count.
std::filesystem::path on_path(const Context& context, std::string_view program) {
  const std::string path = context.env()("PATH").value_or("");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::filesystem::path file = std::filesystem::path(path.substr(at, end - at)) / program;
    struct stat info{};
    if (file.is_absolute() && ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0)
      return file;
    at = end + 1;
  }
  return {};
}

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

int print_plan(Context& context, const LaunchPlan& plan, const std::vector<std::string>& command) {
  if (context.json()) {
    json::Object document, set;
    for (const auto& [name, value] : plan.set) set[name] = value;
    document["set"] = std::move(set);
    document["unset"] = json::Array(plan.unset.begin(), plan.unset.end());
    document["command"] = json::Array(command.begin(), command.end());
    context.print_json(std::move(document));
    return 0;
  }
  for (const std::string& name : plan.unset) context.print("unset {}\n", name);
  for (const auto& [name, value] : plan.set) context.print("export {}={}\n", name, quoted(value));
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + quoted(word);
  context.print("{}\n", line);
  return 0;
}

// Becomes the client; returns only by throwing.
[[noreturn]] void become(const std::filesystem::path& program, const LaunchPlan& plan,
                         const std::vector<std::string>& command) {
  for (const std::string& name : plan.unset) ::unsetenv(name.c_str());
  for (const auto& [name, value] : plan.set) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::signal(SIGXFSZ, SIG_DFL);  // what is ignored here would stay ignored there
  ::execv(program.c_str(), words.data());
  fail(ErrorKind::io, "{}: {}", program.string(), std::strerror(errno));
}

int run(Context& context) {
  const Client& client = client_of(context.required("CLIENT"));
  const Served server = served(context, client);
  const LaunchPlan plan = client.plan(server);
  if (!plan.file.empty()) io::write_file_atomic(io::real_fs(), plan.file, plan.file_text, 0600);
  std::vector<std::string> command = {std::string(client.name)};
  command.insert(command.end(), plan.arguments.begin(), plan.arguments.end());
  for (std::string& word : context.args().positionals("ARGS")) command.push_back(std::move(word));
  if (server.context > 0 && server.context < client.context_min)
    context.warn("{} wants a context of {} positions or more, and {} has {} here: hearth serve --context sets it",
                 client.name, client.context_min, server.model, server.context);
  if (context.args().on("print") || context.json()) return print_plan(context, plan, command);
  const std::filesystem::path program = on_path(context, client.name);
  if (program.empty())
    fail(ErrorKind::not_found, "{} is not installed; {} installs it (hearth launch --print {} shows what it is told)",
         client.name, client.install, client.name);
  context.note("{} asks {} at {}", client.name, server.model, server.url);
  context.flush_out();
  become(program, plan, command);
}

}  // namespace

const Command kLaunch = {
    .name = "launch",
    .aliases = "",
    .summary = "starts a coding agent that asks this machine's server",
    .details =
        "Base URL, key and model go to it by environment and arguments; its settings\n"
        "stay as they are. Flags of hearth stand before CLIENT:\n"
        "  hearth launch claude\n"
        "  hearth launch --model qwen codex exec \"say hello\"",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .passes_on = true,
};

}  // namespace hearth::cli
