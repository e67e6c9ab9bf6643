#include "cli/serve_options.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/fs.h"
#include "base/log.h"
#include "cli/units.h"
#include "cli/version.h"
#include "decode/memory.h"
#include "text/tools/dialect.h"

namespace hearth::cli {
namespace {

constexpr std::array kOwnFlags = {
    Flag{.name = "host",
         .kind = ValueKind::text,
         .value = "HOST",
         .fallback = "127.0.0.1",
         .help = "address to listen on, or the path of a Unix socket",
         .aliases = "--unix",
         .filled = true},
    Flag{.name = "port",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "8080",
         .help = "port to listen on; 0: a free one",
         .min = 0,
         .max = 65535},
    Flag{.name = "api-key",
         .kind = ValueKind::text,
         .value = "KEY",
         .help = "a key that clients must send; better in a file",
         .repeat = true,
         .filled = true},
    Flag{.name = "api-key-file",
         .kind = ValueKind::file,
         .value = "FILE",
         .help = "keys, one a line; read again on SIGHUP"},
    Flag{.name = "admin-key-file",
         .kind = ValueKind::file,
         .value = "FILE",
         .help = "keys that may also load, unload and pin models; read again on SIGHUP"},
    Flag{.name = "allow-host",
         .kind = ValueKind::text,
         .value = "NAME",
         .help = "a further name by which clients reach this server",
         .repeat = true,
         .filled = true},
    Flag{.name = "cors-origin",
         .kind = ValueKind::text,
         .value = "ORIGIN",
         .help = "an origin whose pages may call: https://example.org",
         .repeat = true,
         .filled = true},
    Flag{.name = "allow-models",
         .kind = ValueKind::text,
         .value = "MODEL",
         .help = "a further model that may be asked for (default: all of the store, on this machine)",
         .aliases = "--models",
         .repeat = true,
         .filled = true},
    Flag{.name = "served-model-name",
         .kind = ValueKind::text,
         .value = "NAME",
         .help = "what clients call the model",
         .filled = true},
    Flag{.name = "any-model", .help = "unknown model names mean the default model"},
    Flag{.name = "adapter",
         .kind = ValueKind::file,
         .value = "DIR",
         .help = "a LoRA adapter to mount on MODEL at the start; the first one is on where a request names none",
         .aliases = "--adapter-path",
         .repeat = true},
    Flag{.name = "adapters-dir",
         .kind = ValueKind::file,
         .value = "DIR",
         .help = "folder of adapters that may be mounted by name (default: adapters in the data folder)"},
    Flag{.name = "ttl",
         .kind = ValueKind::duration,
         .value = "TIME",
         .fallback = "300s",
         .help = "idle time after which other models than MODEL are unloaded",
         .min = 0,
         .max = 1e9},
    Flag{.name = "watchdog",
         .kind = ValueKind::duration,
         .value = "TIME",
         .fallback = "60s",
         .help = "silence of a model with open requests after which /ready says so; half as much again, and it is "
                 "started anew; 0: never",
         .min = 0},
    Flag{.name = "metrics-listen",
         .kind = ValueKind::text,
         .value = "[HOST:]PORT",
         .help = "serves /metrics alone here too (HOST: 127.0.0.1)",
         .filled = true},
    Flag{.name = "admission",
         .kind = ValueKind::choice,
         .value = "cap|strict",
         .fallback = "cap",
         .help = "max_tokens beyond the context: lowered, or refused"},
    Flag{.name = "sse-ping",
         .kind = ValueKind::duration,
         .value = "TIME",
         .fallback = "2s",
         .help = "a sign of life on silent streams this often; 0: none",
         .min = 0},
    Flag{.name = "detach", .help = "serves in the background; prints the address once it answers"},
    Flag{.name = "log-file",
         .kind = ValueKind::file,
         .value = "FILE",
         .help = "what goes to stderr goes there, up to 64 MiB and as much again in FILE.1 (default of --detach: "
                 "logs/serve.log in the state folder)"},
    Flag{.name = "offline",
         .help = "no process of the server can make a network connection: the kernel refuses it; opens no page either"},
    Flag{.name = "no-open", .help = "does not open the page in a browser when started from a terminal"},
};
constexpr auto kFlags = joined(kOwnFlags, kWorkerFlags);

// Keys, one a line; empty lines and those that begin with # do not count.
std::vector<std::string> read_keys(const Args& args, const hub::Env& env, const std::string& flag) {
  std::vector<std::string> keys;
  const auto file = args.text(flag);
  if (!file) return keys;
  const std::filesystem::path path = hub::expand_home(*file, env);
  const std::string text = io::real_fs().read_file(path, 1 << 20);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
    fail(ErrorKind::invalid_argument, "{} can be read by others: chmod 600 {}", path.string(), path.string());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && !line.starts_with('#')) keys.push_back(std::move(line));
    at = end + 1;
  }
  if (keys.empty()) fail(ErrorKind::invalid_argument, "{} holds no key", path.string());
  return keys;
}

std::vector<std::string> api_keys(const Args& args, const hub::Env& env) {
  std::vector<std::string> keys = args.texts("api-key");
  for (std::string& key : read_keys(args, env, "api-key-file")) keys.push_back(std::move(key));
  return keys;
}

// "9464", "127.0.0.1:9464", "[::1]:9464".
void read_metrics_listen(const std::string& text, server::FrontOptions& o) {
  const size_t colon = text.rfind(':');
  const auto port = parse_integer(colon == std::string::npos ? text : text.substr(colon + 1));
  std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!port || *port < 0 || *port > 65535 || host.empty())
    fail(ErrorKind::invalid_argument, "--metrics-listen is '{}', expected PORT or HOST:PORT, PORT from 0 to 65535",
         text);
  o.metrics_host = host;
  o.metrics_port = static_cast<int>(*port);
}

}  // namespace

std::span<const Flag> serve_flags() { return kFlags; }

server::FrontOptions front_options(const Args& args, const hub::Env& env, const std::string& session_token,
                                   const std::shared_ptr<const Workers>& workers) {
  server::FrontOptions o;
  o.host = *args.text("host");
  if (o.host.find('/') != std::string::npos) o.unix_path = hub::expand_home(o.host, env).string();
  o.port = static_cast<int>(*args.integer("port"));
  if (const auto listen = args.text("metrics-listen")) read_metrics_listen(*listen, o);
  if (args.origin("demote-idle") != Origin::fallback && !args.given("disk-cache"))
    fail(ErrorKind::invalid_argument,
         "--demote-idle moves prefixes to the folder of --disk-cache, and there is no --disk-cache");
  if (const auto dialect = args.text("tool-dialect")) text::tool_dialect(*dialect);  // or says which there are
  o.settings.version = fmt::format("{} ({})", kVersionText, commit());
  o.settings.numerics = *args.text("numerics");
  o.settings.limits = read_limits(args.texts("limit"));
  o.settings.strict_admission = *args.text("admission") == "strict";
  o.settings.ping = std::chrono::milliseconds(static_cast<int64_t>(*args.seconds("sse-ping") * 1000));
  o.settings.memory_budget = workers->memory_budget();
  o.auth.keys = api_keys(args, env);
  o.auth.admin_keys = read_keys(args, env, "admin-key-file");
  o.auth.session_token = session_token;
  o.auth.hosts = args.texts("allow-host");
  o.auth.cors_origins = args.texts("cors-origin");
  for (const auto* keys : {&o.auth.keys, &o.auth.admin_keys})
    for (const std::string& key : *keys) log::global().add_secret(key);
  log::global().add_secret(session_token);
  o.models.default_model = args.positional("MODEL").value_or("");
  o.models.served_name = args.text("served-model-name").value_or("");
  o.models.allowed = args.texts("allow-models");
  o.models.only_default = o.unix_path.empty() && !server::is_loopback(o.host);
  o.models.aliases = workers->settings().aliases();
  o.models.any_model = args.on("any-model");
  for (const std::string& adapter : args.texts("adapter"))
    if (adapter != "none") o.models.adapters.push_back(hub::expand_home(adapter, env));
  const auto adapters = args.text("adapters-dir");
  o.settings.adapters = adapters ? hub::expand_home(*adapters, env) : hub::data_folder(env) / "adapters";
  o.models.ttl = std::chrono::milliseconds(static_cast<int64_t>(*args.seconds("ttl") * 1000));
  o.models.watchdog = std::chrono::milliseconds(static_cast<int64_t>(*args.seconds("watchdog") * 1000));
  o.models.memory_budget = o.settings.memory_budget;
  const int64_t budget = o.settings.memory_budget;
  o.models.command = [workers](const hub::FoundModel& model, int64_t room) {
    return workers->command(model, room, {});
  };
  o.models.text_command = [workers, budget](const hub::FoundModel& model) {
    return workers->command(model, budget, {"--role", "text"});
  };
  o.models.rules = [workers](const hub::FoundModel& model) { return workers->rules(model); };
  o.library.command = [workers, budget](const hub::FoundModel& model, std::optional<int64_t> positions) {
    return workers->headers(model, budget, positions);
  };
  return o;
}

Changes changes(const Args& before, const Args& after) {
  // What Front::reload takes. The keys in files are read again in any case.
  constexpr std::string_view kNow[] = {"api-key",   "api-key-file", "admin-key-file", "allow-host", "cors-origin",
                                       "any-model", "ttl",          "watchdog",       "admission",  "sse-ping"};
  const auto texts = [](const Args& args, std::string_view flag) {
    const auto value = args.values().find(flag);
    return value == args.values().end() ? std::vector<std::string>() : value->second.texts;
  };
  Changes changes;
  const auto look = [&](const Flag& flag) {
    if (flag.name == "help" || texts(before, flag.name) == texts(after, flag.name)) return;
    const auto is_it = [&](const Flag& other) { return other.name == flag.name; };
    const bool of_worker = std::any_of(kWorkerFlags.begin(), kWorkerFlags.end(), is_it) && !is_fixed(flag.name);
    const bool now = std::find(std::begin(kNow), std::end(kNow), flag.name) != std::end(kNow);
    (now ? changes.now : of_worker ? changes.next_load : changes.next_start).emplace_back(flag.name);
  };
  for (const Flag& flag : kFlags) look(flag);
  for (const Flag& flag : common_flags())
    if (flag.name != "json") look(flag);
  return changes;
}

}  // namespace hearth::cli
