#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/fs.h"
#include "cli/browser.h"
#include "cli/client_install.h"
#include "cli/clients.h"
#include "cli/commands.h"
#include "cli/programs.h"
#include "cli/server_client.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "CLIENT", .help = "the program to start", .choices = "claude|codex|opencode|pi|web"},
    {.name = "ARGS", .help = "its own arguments, whatever they look like", .required = false, .repeat = true},
};
constexpr Flag kFlags[] = {
    {.name = "model",
     .kind = ValueKind::text,
     .value = "NAME",
     .help = "a model of the server (default: the one it serves)",
     .filled = true},
    {.name = "api-key",
     .kind = ValueKind::text,
     .value = "KEY",
     .help = "the key that the server wants; better in HEARTH_API_KEY",
     .filled = true},
    {.name = "print", .help = "prints environment and command as shell lines, and starts nothing"},
    {.name = "install", .help = "a client that is missing is installed first, by npm into a folder of ours"},
    {.name = "remove", .help = "takes away what --install put there, and starts nothing"},
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

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line + "\n";
}

// install: what comes first; empty: nothing.
int print_plan(Context& context, const LaunchPlan& plan, const std::vector<std::string>& install,
               const std::vector<std::string>& command) {
  if (context.json()) {
    json::Object document, set;
    for (const auto& [name, value] : plan.set) set[name] = value;
    document["set"] = std::move(set);
    document["unset"] = json::Array(plan.unset.begin(), plan.unset.end());
    if (!install.empty()) document["install"] = json::Array(install.begin(), install.end());
    document["command"] = json::Array(command.begin(), command.end());
    context.print_json(std::move(document));
    return 0;
  }
  if (!install.empty()) context.write_out(line_of(install));
  for (const std::string& name : plan.unset) context.print("unset {}\n", name);
  for (const auto& [name, value] : plan.set) context.print("export {}={}\n", name, quoted(value));
  context.write_out(line_of(command));
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

std::filesystem::path program_of(const Context& context, const Client& client) {
  const std::filesystem::path found = find_client(context, client);
  if (!found.empty()) return found;
  if (context.args().on("install")) return install_client(context, client);
  fail(ErrorKind::not_found,
       "{} is not installed; hearth launch --install {} or {} installs it (hearth launch --print {} shows what it is "
       "told)",
       client.name, client.name, install_line(client), client.name);
}

// The page of the server, in the browser.
int open_page(Context& context) {
  for (const char* flag : {"model", "install", "remove"})
    if (context.args().origin(flag) == Origin::command_line)
      fail(ErrorKind::invalid_argument, "launch web takes no --{}", flag);
  if (const auto words = context.args().positionals("ARGS"); !words.empty())
    fail(ErrorKind::invalid_argument, "launch web takes no arguments, and '{}' is one", words[0]);
  const server::InstanceInfo instance = running_server(context);
  if (instance.url.starts_with("unix:"))
    fail(ErrorKind::invalid_argument,
         "the server listens on {}, which no browser can reach: hearth serve MODEL --port 8080 gives it a port",
         instance.url.substr(5));
  const std::string url = instance.url + "/";
  const std::vector<std::string> command = page_opener(context.env(), url);
  if (command.empty())
    fail(ErrorKind::not_found, "there is no xdg-open on PATH, and BROWSER names no program: open {} yourself", url);
  if (context.args().on("print") || context.json()) return print_plan(context, {}, {}, command);
  context.note("the page is {}", url);
  context.flush_out();
  become(command[0], {}, command);
}

int run(Context& context) {
  if (context.required("CLIENT") == "web") return open_page(context);
  const Client& client = client_of(context.required("CLIENT"));
  if (context.args().on("remove") && context.args().on("install"))
    fail(ErrorKind::invalid_argument, "--install and --remove are one too many");
  if (context.args().on("remove")) return remove_client(context, client), 0;
  const Served server = served(context, client);
  const LaunchPlan plan = client.plan(server);
  if (!plan.file.empty()) io::write_file_atomic(io::real_fs(), plan.file, plan.file_text, 0600);
  std::vector<std::string> command = {std::string(client.name)};
  command.insert(command.end(), plan.arguments.begin(), plan.arguments.end());
  for (std::string& word : context.args().positionals("ARGS")) command.push_back(std::move(word));
  if (server.context > 0 && server.context < client.context_min)
    context.warn(
        "{} wants a context of {} positions or more, and {} has {} here: hearth serve --context raises it as "
        "far as the model was trained for",
        client.name, client.context_min, server.model, server.context);
  if (context.args().on("print") || context.json()) {
    std::vector<std::string> install;
    const std::filesystem::path found = find_client(context, client);
    if (found.empty() && context.args().on("install")) install = install_command(context, client);
    if (find_program(context.env(), client.name).empty() && !(found.empty() && install.empty()))
      command[0] = installed_program(context, client).string();
    return print_plan(context, plan, install, command);
  }
  const std::filesystem::path program = program_of(context, client);
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
        "  hearth launch --install pi\n"
        "  hearth launch web            the server's page, in the browser\n"
        "  hearth launch --model qwen codex exec \"say hello\"",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .passes_on = true,
};

}  // namespace hearth::cli
