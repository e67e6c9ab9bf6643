#include <malloc.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "cli/browser.h"
#include "cli/choose_model.h"
#include "cli/commands.h"
#include "cli/descriptors.h"
#include "cli/detach.h"
#include "cli/foreign_words.h"
#include "cli/log_file.h"
#include "cli/programs.h"
#include "cli/progress.h"
#include "cli/serve_options.h"
#include "cli/serve_workers.h"
#include "cli/service_manager.h"
#include "cli/units.h"
#include "hub/local_models.h"
#include "server/front/instance.h"
#include "server/front/model_headers.h"
#include "server/front/offline.h"
#include "server/front/serve.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL",
     .help = "the model that answers; none: the largest of the store that fits well",
     .required = false},
};
constexpr auto kDrain = std::chrono::seconds(25), kHeaders = std::chrono::seconds(20);
constexpr auto kHeadersAgain = std::chrono::seconds(4);  // while the main thread waits, and SIGTERM with it
constexpr auto kSecond = std::chrono::microseconds(std::chrono::seconds(1));

// Of the store, by what each model's headers say; a model that cannot be read is passed over. Throws Error{cancelled}
// when `stop` comes while they are read.
std::string chosen_of_store(const Context& context, const Workers& workers, int64_t budget,
                            const std::atomic<bool>& stop) {
  const hub::Store store = hub::Store::from_env(context.env());
  std::vector<hub::FoundModel> models = hub::local_models(store);
  std::string preferred;
  if (const ModelSettings* marked = workers.settings().default_model(); marked && !marked->path.empty()) {
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
  for (const hub::FoundModel& model : models) {
    server::ModelHeaders headers =
        server::read_headers(workers.headers(model, budget, std::nullopt), model.path, kHeaders, stop);
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
  std::string revision;
  for (const server::ModelView& view : front.models().resident())
    if (view.is_default && !view.revision.empty()) revision = fmt::format("revision {}, ", view.revision.substr(0, 12));
  context.note("  {}on the CPU with {} threads", revision, whole("threads"));
  context.note("  context {} positions, {} answers at once, KV cache {}, numerics {}", whole("context_window"),
               whole("batch"), facts.find("kv") ? *facts.find("kv")->string() : "", options.settings.numerics);
  context.note("  memory {}: weights {}, KV {}, of a budget of {}", show_size(whole("memory_bytes")),
               show_size(whole("weights_bytes")), show_size(whole("kv_bytes")),
               show_size(options.settings.memory_budget));
  const auto disk = context.args().text("disk-cache");
  context.note("  prompt cache {}, {}{}", show_size(whole("prompt_cache_bytes")),
               disk ? fmt::format("on the disk {} in {}, ", show_size(whole("disk_cache_max_bytes")), *disk) : "",
               options.auth.keys.empty() ? "no key needed on this machine" : "clients need a key");
  if (const std::string metrics = front.metrics_url(); !metrics.empty()) context.note("  figures at {}", metrics);
  context.note("  OpenAI clients: base URL {}/v1; Anthropic clients: {}", front.url(), front.url());
}

// The signals of this server, blocked before any thread starts and taken on the main thread alone.
sigset_t our_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, s);
  return signals;
}

// The next signal; 0: none came within that time.
int next_signal(std::chrono::microseconds within) {
  const sigset_t signals = our_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(within);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (within - seconds).count() * 1000};
  const int signal = ::sigtimedwait(&signals, nullptr, &time);
  return signal > 0 ? signal : 0;
}

// A browser would be as offline as the server that started it.
void open_page(const Context& context, const std::string& url) {
  if (context.args().on("no-open") || context.args().on("offline")) return;
  if (!context.in_is_terminal() || !context.err_is_terminal()) return;
  if (!has_display(context.env()) || !url.starts_with("http")) return;
  std::vector<std::string> words = page_opener(context.env(), url + "/");
  if (words.empty()) return;
  // The shell ends at once and leaves the browser to the system.
  words.insert(words.begin(), {"/bin/sh", "-c", "\"$@\" >/dev/null 2>&1 &", "sh"});
  run_program(words);
}

// Each connection takes a descriptor.
void allow_connections(const Context& context, const server::Limits& limits) {
  const size_t connections = limits.size_of(server::LimitId::connections);
  const size_t wanted = descriptors_for(connections), have = allow_descriptors(wanted);
  if (have < wanted)
    context.warn(
        "{} connections need {} file descriptors, this process may have {} (ulimit -Hn): --limit connections=N",
        connections, wanted, have);
}

// One run of the server, from its lock to its end.
class Serving {
 public:
  explicit Serving(Context& context)
      : context_(context),
        manager_(context.env()),
        instance_(hub::runtime_folder(context.env())),
        workers_(std::make_shared<Workers>(context)) {
    for (const std::string& sentence : workers_->settings().absent()) context.warn("{}", sentence);
    std::vector<net::Listener> inherited = net::inherited_listeners();
    options_ = front_options(context.args(), context.env(), instance_.token(), workers_);
    allow_connections(context, options_.settings.limits);
    if (options_.models.default_model.empty() && !choose()) return;
    front_ = std::make_unique<server::Front>(options_, hub::Store::from_env(context.env()), std::move(inherited));
    if (context.args().on("offline")) server::leave_network();
    instance_.publish(front_->url());
    if (reload_is_due_) reload();
  }

  int run() {
    if (!front_ || !load()) return 0;
    ready_ = true;
    manager_.ready("serving at " + front_->url());
    open_page(context_, front_->url());
    wait();
    end();
    return 0;
  }

 private:
  static constexpr auto kLook = std::chrono::milliseconds(10);  // for signals, while others work

  // False: a service manager ended it meanwhile. Throws Error{cancelled} for Ctrl-C.
  bool choose() {
    std::atomic<bool> stop{false};
    std::future<std::string> name = std::async(std::launch::async, [&] {
      return chosen_of_store(context_, *workers_, options_.settings.memory_budget, stop);
    });
    int told = 0;
    while (name.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      const int signal = next_signal(kLook);
      if (signal == SIGHUP) reload_is_due_ = true;  // there is no front yet that could take anything
      if (signal == 0 || signal == SIGHUP) continue;
      told = signal;
      stop = true;
    }
    if (told == SIGTERM) return false;
    if (told == SIGINT) fail(ErrorKind::cancelled, "interrupted while the headers of the store's models were read");
    options_.models.default_model = name.get();
    return true;
  }

  // False: it was told to end before the model was loaded.
  bool load() {
    const std::string name = front_->models().resolve("");
    std::optional<Progress> progress(std::in_place, context_, "loading " + name, Progress::Unit::share);
    std::future<json::Object> facts = std::async(std::launch::async, [&] {
      return front_->load([&](int64_t done, int64_t total) { progress->show(done, total); });
    });
    while (facts.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      const int signal = next_signal(kLook);
      if (signal == SIGHUP) reload();
      if (signal == 0 || signal == SIGHUP) continue;
      end();
      facts.wait();
      return false;
    }
    progress.reset();
    print_card(context_, *front_, options_, name, facts.get());
    return true;
  }

  void end() {
    manager_.stopping();
    context_.note("finishing what is open; no new requests");
    const size_t cut = front_->drain(kDrain);
    if (cut > 0) context_.warn("{} connections were cut", cut);
  }

  // Until a signal ends it.
  void wait() {
    auto alive_at = std::chrono::steady_clock::now();
    const auto every = manager_.alive_every();
    for (;;) {
      const int signal = next_signal(every ? std::min(*every, kSecond) : kSecond);
      if (signal == SIGHUP) reload();
      else if (signal != 0) return;
      rotate();
      if (!every || std::chrono::steady_clock::now() < alive_at) continue;
      alive_at = std::chrono::steady_clock::now() + *every;
      front_->sign_of_life([this] { manager_.alive(); });
    }
  }

  // All of it or nothing: what is wrong leaves keys and settings as they were.
  void reload() {
    if (ready_) manager_.reloading();
    try {
      const Args args = context_.read_again();
      const std::shared_ptr<const Workers> workers = workers_->with(args);
      server::FrontOptions options = front_options(args, context_.env(), instance_.token(), workers);
      const std::string marked = marked_default(*workers);
      const bool is_other = !marked.empty() && marked != options_.models.default_model;
      // What was said of the default model at the start is said of that one.
      const bool waits_for_start =
          is_other && (!options_.models.served_name.empty() || !options_.models.adapters.empty());
      options.models.default_model = marked;
      const bool takes_over = is_other && !waits_for_start && fits(options.models, *workers);
      if (!takes_over) options.models.default_model = options_.models.default_model;
      front_->reload(options);
      options_.models.default_model = options.models.default_model;
      if (takes_over) context_.note("the default model is {} now", front_->models().names().default_id());
      for (const std::string& sentence : workers->settings().absent()) context_.warn("{}", sentence);
      Changes changed = changes(context_.args(), args);
      if (waits_for_start) changed.next_start.emplace_back("default of models.toml");
      const auto listed = [](const std::vector<std::string>& flags) {
        return fmt::format("{}", fmt::join(flags, ", "));
      };
      std::string line = "keys and settings were read again";
      if (!changed.now.empty()) line += "; other than at the start: " + listed(changed.now);
      if (!changed.next_load.empty()) line += "; from a model's next load on: " + listed(changed.next_load);
      context_.note("{}", line);
      if (!changed.next_start.empty())
        context_.warn("not before the server's next start: {}", listed(changed.next_start));
    } catch (const Error& error) {
      context_.warn("settings and keys stay as they were: {}", error.what());
    }
    if (ready_) manager_.ready("serving at " + front_->url());
  }

  // By its name in the store; empty: none is, it is not here, or the command line names one.
  std::string marked_default(const Workers& workers) const {
    const ModelSettings* marked = workers.settings().default_model();
    if (context_.args().positional("MODEL") || !marked || marked->path.empty()) return {};
    return hub::Store::from_env(context_.env()).find(marked->table).name;
  }

  // Whether the default model may be that one, as at the start. A warning says why not: the rest is taken over.
  bool fits(const server::ModelsOptions& options, const Workers& workers) const {
    const std::string& name = options.default_model;
    try {
      front_->models().names().check_default(options);
      const hub::FoundModel model = hub::Store::from_env(context_.env()).find(name);
      const std::atomic<bool> stop{false};
      const server::ModelHeaders headers = server::read_headers(
          workers.headers(model, options_.settings.memory_budget, std::nullopt), model.path, kHeadersAgain, stop);
      if (headers.refusal) fail(headers.refusal->kind, "{}", headers.refusal->message);
      choose_model({{.name = name, .facts = headers.facts}}, name);
      return true;
    } catch (const Error& error) {
      context_.warn("{} is the default of models.toml and cannot be served: {}; {} stays", name, error.what(),
                    front_->models().names().default_id());
      return false;
    }
  }

  void rotate() {
    const auto file = context_.args().text("log-file");
    if (!file) return;
    try {
      rotate_log(hub::expand_home(*file, context_.env()), STDERR_FILENO);
    } catch (const Error& error) {
      log::warn("serve", "{}", error.what());
    }
  }

  Context& context_;
  ServiceManager manager_;
  server::Instance instance_;
  std::shared_ptr<const Workers> workers_;  // as at the start
  server::FrontOptions options_;
  std::unique_ptr<server::Front> front_;
  bool ready_ = false, reload_is_due_ = false;
};

int run(Context& context) {
  if (asks_for_limits(context.args().texts("limit"))) {
    context.write_out(limits_help());
    return 0;
  }
  refuse_address(context.args().positional("MODEL").value_or(""));
  if (context.args().on("detach")) return serve_detached(context);
  if (const auto file = context.args().text("log-file")) log_to(hub::expand_home(*file, context.env()), STDERR_FILENO);
  // Large bodies go back to the system when they are done with: the allocator would rather learn to keep them.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  const sigset_t signals = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Serving(context).run();
}

}  // namespace

const Command kServe = {
    .name = "serve",
    .aliases = "",
    .summary = "a server for OpenAI and Anthropic clients",
    .details = "",
    .positionals = kPositionals,
    .flags = serve_flags(),
    .run = run,
    .json = false,
};

}  // namespace hearth::cli
