#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/fs.h"
#include "base/log.h"
#include "cli/choose_model.h"
#include "cli/commands.h"
#include "cli/fit_report.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "cli/serve_flags.h"
#include "cli/units.h"
#include "cli/version.h"
#include "hub/local_models.h"
#include "server/front/headers.h"
#include "server/front/instance.h"
#include "server/front/serve.h"
#include "text/tools/dialect.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL",
     .help = "the model that answers; none: the largest of the store that fits well",
     .required = false},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "host",
         .kind = ValueKind::text,
         .value = "HOST",
         .fallback = "127.0.0.1",
         .help = "address to listen on, or the path of a Unix socket",
         .aliases = "--unix"},
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
         .repeat = true},
    Flag{.name = "api-key-file",
         .kind = ValueKind::file,
         .value = "FILE",
         .help = "keys, one a line; read again on SIGHUP"},
    Flag{.name = "admin-key-file",
         .kind = ValueKind::file,
         .value = "FILE",
         .help = "keys that may also load, unload and pin models"},
    Flag{.name = "allow-host",
         .kind = ValueKind::text,
         .value = "NAME",
         .help = "a further name by which clients reach this server",
         .repeat = true},
    Flag{.name = "cors-origin",
         .kind = ValueKind::text,
         .value = "ORIGIN",
         .help = "an origin whose pages may call: https://example.org",
         .repeat = true},
    Flag{.name = "allow-models",
         .kind = ValueKind::text,
         .value = "MODEL",
         .help = "a further model that may be asked for (default: all of the store, on this machine)",
         .aliases = "--models",
         .repeat = true},
    Flag{.name = "served-model-name", .kind = ValueKind::text, .value = "NAME", .help = "what clients call the model"},
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
         .min = 0},
    Flag{.name = "watchdog",
         .kind = ValueKind::duration,
         .value = "TIME",
         .fallback = "60s",
         .help = "silence of a model with open requests after which /ready says so; half as much again, and it is "
                 "started anew; 0: never",
         .min = 0},
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
};
constexpr auto kFlags = joined(kOwnFlags, kWorkerFlags);

constexpr auto kDrain = std::chrono::seconds(25), kHeaders = std::chrono::seconds(20);

// Keys, one a line; empty lines and those that begin with # do not count.
std::vector<std::string> read_keys(const Context& context, const std::string& flag) {
  std::vector<std::string> keys;
  const auto file = context.args().text(flag);
  if (!file) return keys;
  const std::filesystem::path path = hub::expand_home(*file, context.env());
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

std::vector<std::string> api_keys(const Context& context) {
  std::vector<std::string> keys = context.args().texts("api-key");
  for (const std::string& key : keys)
    if (key.empty()) fail(ErrorKind::invalid_argument, "--api-key is empty");
  for (std::string& key : read_keys(context, "api-key-file")) keys.push_back(std::move(key));
  return keys;
}

// What a worker may see of the environment: places and settings, no secrets.
std::vector<std::string> worker_environment(const hub::Env& env) {
  std::vector<std::string> list;
  for (const char* name : {"HOME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                           "XDG_STATE_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "OMP_NUM_THREADS",
                           "HEARTH_ISA", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
    if (const auto value = env(name)) list.push_back(fmt::format("{}={}", name, *value));
  return list;
}

// The programs that serve a model, or read parts of it: this one, as `hearth worker`.
class Workers {
 public:
  explicit Workers(const Context& context)
      : settings_(ModelsFile::read(context.env(), hub::Store::from_env(context.env()))),
        arguments_(worker_arguments(context)),
        environment_(worker_environment(context.env())),
        threads_(thread_count(context)) {}

  const ModelsFile& settings() const { return settings_; }

  server::WorkerCommand command(const hub::FoundModel& model, int64_t budget, std::vector<std::string> words) const {
    const ModelSettings* own = settings_.of(model);
    server::WorkerCommand command;
    command.argv = {"/proc/self/exe", "worker",          model.path.string(),   "--name",
                    model.name,       "--memory-budget", std::to_string(budget)};
    for (const auto& more : {arguments_.with(own ? own->worker_words : std::vector<std::string>()), words})
      command.argv.insert(command.argv.end(), more.begin(), more.end());
    command.environment = environment_;
    return command;
  }

  // The memory's speed is measured for the first of them.
  server::WorkerCommand headers(const hub::FoundModel& model, int64_t budget, std::optional<int64_t> positions) {
    std::call_once(measured_, [&] { ram_gbs_ = memory_gbs(threads_); });
    std::vector<std::string> words = {"--role", "headers", "--ram-gbs", fmt::format("{:.3f}", ram_gbs_)};
    if (positions) words.insert(words.end(), {"--ctx", std::to_string(*positions)});
    return command(model, budget, std::move(words));
  }

  server::ModelRules rules(const hub::FoundModel& model) const {
    const ModelSettings* own = settings_.of(model);
    return own ? server::ModelRules{.pinned = own->pinned, .ttl = own->ttl} : server::ModelRules();
  }

 private:
  ModelsFile settings_;
  WorkerArguments arguments_;
  std::vector<std::string> environment_;
  int threads_;
  std::once_flag measured_;
  double ram_gbs_ = 0;
};

server::FrontOptions front_options(const Context& context, const server::Instance& instance,
                                   const std::shared_ptr<Workers>& workers) {
  const Args& args = context.args();
  server::FrontOptions o;
  o.host = *args.text("host");
  if (o.host.find('/') != std::string::npos) o.unix_path = hub::expand_home(o.host, context.env()).string();
  o.port = static_cast<int>(*args.integer("port"));
  o.settings.version = fmt::format("{} ({})", kVersionText, commit());
  o.settings.numerics = *args.text("numerics");
  o.settings.strict_admission = *args.text("admission") == "strict";
  o.settings.ping = std::chrono::milliseconds(static_cast<int64_t>(*args.seconds("sse-ping") * 1000));
  o.settings.memory_budget = args.bytes("memory-budget").value_or(decode::default_memory_budget());
  o.auth.keys = api_keys(context);
  o.auth.admin_keys = read_keys(context, "admin-key-file");
  o.auth.session_token = instance.token();
  o.auth.hosts = args.texts("allow-host");
  o.auth.cors_origins = args.texts("cors-origin");
  for (const auto* keys : {&o.auth.keys, &o.auth.admin_keys})
    for (const std::string& key : *keys) log::global().add_secret(key);
  log::global().add_secret(instance.token());
  if (const auto dialect = args.text("tool-dialect")) text::tool_dialect(*dialect);  // a wrong name ends the start
  o.models.default_model = args.positional("MODEL").value_or("");
  o.models.served_name = args.text("served-model-name").value_or("");
  o.models.allowed = args.texts("allow-models");
  o.models.only_default = o.unix_path.empty() && !server::is_loopback(o.host);
  o.models.any_model = args.on("any-model");
  for (const std::string& adapter : args.texts("adapter"))
    if (adapter != "none") o.models.adapters.push_back(hub::expand_home(adapter, context.env()));
  const auto adapters = args.text("adapters-dir");
  o.settings.adapters =
      adapters ? hub::expand_home(*adapters, context.env()) : hub::data_folder(context.env()) / "adapters";
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

// Of the store, by what each model's headers say; a model that cannot be read is passed over.
std::string chosen_of_store(const Context& context, Workers& workers, int64_t budget) {
  const hub::Store store = hub::Store::from_env(context.env());
  std::vector<hub::FoundModel> models = hub::local_models(store);
  std::string preferred;
  if (const ModelSettings* marked = workers.settings().default_model()) {
    const hub::FoundModel found = store.find(marked->table);
    preferred = found.name;
    if (std::none_of(models.begin(), models.end(), [&](const auto& m) { return m.path == found.path; }))
      models.push_back(found);
  }
  if (models.empty())
    fail(
        ErrorKind::not_found,
        "there is no model in {} yet: hearth import FILE.gguf puts one there, and hearth serve FILE.gguf serves a file "
        "where it lies",
        store.cache().string());
  if (models.size() == 1) return models.front().name;  // its load says whether it fits
  std::vector<Candidate> candidates;
  const std::atomic<bool> never{false};
  for (const hub::FoundModel& model : models) {
    server::Headers headers =
        server::read_headers(workers.headers(model, budget, std::nullopt), model.path, kHeaders, never);
    if (headers.refusal) context.note("{} is passed over: {}", model.name, headers.refusal->message);
    else candidates.push_back({.name = model.name, .facts = std::move(headers.facts)});
  }
  if (candidates.empty())
    fail(ErrorKind::invalid_argument, "none of the {} models in {} can be served: name one to see why", models.size(),
         store.cache().string());
  std::string name = choose_model(candidates, preferred);
  if (!preferred.empty() && name != preferred)
    context.note("{} is the default of models.toml and does not fit; {} is served", preferred, name);
  return name;
}

void print_card(const Context& context, const server::Front& front, const server::FrontOptions& options,
                const std::string& name, const json::Object& facts) {
  const auto whole = [&](const char* key) {
    const json::Value* value = facts.find(key);
    return value && value->is_int() ? value->as_int(key) : 0;
  };
  context.note("{} is ready at {}", name, front.url());
  context.note("  context {} positions, {} answers at once, KV cache {}, numerics {}", whole("context_window"),
               whole("batch"), facts.find("kv") ? *facts.find("kv")->string() : "", options.settings.numerics);
  context.note("  memory {}: weights {}, KV {}, of a budget of {}", show_size(whole("memory_bytes")),
               show_size(whole("weights_bytes")), show_size(whole("kv_bytes")),
               show_size(options.settings.memory_budget));
  context.note("  prompt cache {}, {}", show_size(whole("prompt_cache_bytes")),
               options.auth.keys.empty() ? "no key needed on this machine" : "clients need a key");
  context.note("  OpenAI clients: base URL {}/v1; Anthropic clients: {}", front.url(), front.url());
}

// READY=1 and the like to systemd, if it asks (sd_notify(3)).
void notify_systemd(const Context& context, std::string_view state) {
  const auto path = context.env()("NOTIFY_SOCKET");
  if (!path || path->empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path->size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path->data(), path->size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path->size());
  if (::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length) < 0)
    context.warn("systemd was not notified: {}", std::strerror(errno));
  ::close(fd);
}

int run(Context& context) {
  // Large bodies go back to the system when they are done with: the allocator would rather learn to keep them.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // Signals are taken here alone: blocked before any thread starts.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, s);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  server::Instance instance(hub::runtime_folder(context.env()));
  const auto workers = std::make_shared<Workers>(context);
  for (const std::string& sentence : workers->settings().absent()) context.warn("{}", sentence);
  server::FrontOptions options = front_options(context, instance, workers);
  if (options.models.default_model.empty())
    options.models.default_model = chosen_of_store(context, *workers, options.settings.memory_budget);
  server::Front front(options, hub::Store::from_env(context.env()));
  instance.publish(front.url());
  const std::string name = front.models().resolve("");
  const json::Object facts = [&] {
    Progress progress(context, "loading " + name, Progress::Unit::share);
    return front.load([&](int64_t done, int64_t total) { progress.show(done, total); });
  }();
  print_card(context, front, options, name, facts);
  notify_systemd(context, "READY=1");

  for (;;) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    if (signal != SIGHUP) break;
    try {
      const std::vector<std::string> keys = api_keys(context), admin_keys = read_keys(context, "admin-key-file");
      for (const auto* list : {&keys, &admin_keys})
        for (const std::string& key : *list) log::global().add_secret(key);
      front.replace_keys(keys, admin_keys);
      context.note("keys were read again");
    } catch (const Error& error) {
      context.warn("keys stay as they were: {}", error.what());
    }
  }
  notify_systemd(context, "STOPPING=1");
  context.note("finishing what is open; no new requests");
  const size_t cut = front.drain(kDrain);
  if (cut > 0) context.warn("{} connections were cut", cut);
  return 0;
}

}  // namespace

const Command kServe = {
    .name = "serve",
    .aliases = "",
    .summary = "a server for OpenAI and Anthropic clients",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .json = false,
};

}  // namespace hearth::cli
