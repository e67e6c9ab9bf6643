#include "cli/engine_flags.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>

#include "base/digest.h"
#include "base/error.h"
#include "base/team.h"
#include "cli/progress.h"
#include "cpu/executor.h"
#include "model/forward.h"

namespace hearth::cli {

int thread_count(const Context& context) {
  return static_cast<int>(context.args().integer("threads").value_or(cpus_allowed()));
}

std::optional<graph::KvFormat> kv_format(std::string_view word) {
  if (word == "bf16" || word == "off") return graph::KvFormat::bf16;
  if (word == "q8" || word == "8") return graph::KvFormat::q8;
  if (word == "q4" || word == "4") return graph::KvFormat::q4;
  if (word == "f32") return graph::KvFormat::f32;
  return std::nullopt;
}

decode::EngineOptions engine_options(const Context& context, const LoadOverrides& overrides) {
  const Args& args = context.args();
  decode::EngineOptions options;
  options.numerics = graph::parse_numerics(overrides.numerics.value_or(*args.text("numerics")));
  options.kv = kv_format(overrides.kv.value_or(*args.text("kv")));
  options.context = args.integer("context").value_or(0);
  options.prefill_chunk = *args.integer("prefill-chunk");
  options.memory_budget = args.bytes("memory-budget").value_or(decode::default_memory_budget());
  if (overrides.memory_taken >= options.memory_budget)
    fail(ErrorKind::out_of_memory, "the memory budget is {} MB and the models that are loaded take {} MB of it",
         options.memory_budget / 1'000'000, overrides.memory_taken / 1'000'000);
  options.memory_budget -= overrides.memory_taken;
  return options;
}

std::optional<std::string> state_of(const model::Model& model) {
  std::string state;
  for (const MappedFile& file : model.weights().files()) {
    struct stat info{};
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(file.path(), error);
    if (error || ::stat(path.c_str(), &info) != 0) return std::nullopt;
    // Not the device: its number may be another one after a restart.
    state += fmt::format("{}\n{}-{}-{}.{:09}\n", path.string(), info.st_ino, info.st_size, info.st_mtim.tv_sec,
                         info.st_mtim.tv_nsec);
  }
  return sha256_hex(state);
}

std::filesystem::path packed_folder(const hub::Env& env) { return hub::cache_folder(env) / "packed"; }

std::optional<cpu::PackCacheOptions> pack_cache_options(const Context& context, const model::Model& model) {
  const int64_t room = *context.args().bytes("pack-cache");
  const std::optional<std::string> state = state_of(model);
  if (!state || room == 0) return std::nullopt;
  return cpu::PackCacheOptions{
      .dir = packed_folder(context.env()), .key = *state, .source = model.path().string(), .bytes_max = room};
}

std::unique_ptr<graph::Executor> make_executor(const Context& context, const model::Model& model,
                                               const LoadOverrides& overrides) {
  if (overrides.executor.value_or(*context.args().text("executor")) == "reference")
    return graph::make_reference_executor(thread_count(context));
  return cpu::make_cpu_executor({.threads = thread_count(context),
                                 .pack_cache = pack_cache_options(context, model).value_or(cpu::PackCacheOptions{})});
}

namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Threads that wait for each other on one CPU give it away again and again.
void warn_of_threads(const Context& context) {
  if (const int threads = thread_count(context), cpus = cpus_allowed(); threads > cpus)
    context.warn("{} threads on {} CPU{} wait for each other; --threads {} is faster", threads, cpus,
                 cpus == 1 ? "" : "s", cpus);
}

std::optional<formats::Adapter> adapter_of(const Context& context, const hub::FoundModel& found,
                                           const model::Model& model, const LoadOverrides& overrides) {
  const std::optional<std::string> dir = overrides.adapter ? overrides.adapter : context.args().text("adapter");
  if (!dir || *dir == "none") return std::nullopt;
  formats::Adapter adapter =
      formats::read_adapter(hub::expand_home(*dir, context.env()), model::adapter_linears(model.spec()));
  if (const std::string why = formats::base_mismatch(adapter, found.repo, found.revision); !why.empty())
    context.warn("{}", why);
  context.detail("adapter {}: {} linears, rank {} at most", adapter.id, adapter.linears.size(), adapter.rank_max());
  return adapter;
}

}  // namespace

LoadedModel load_model(const Context& context, const LoadRequest& request, const LoadOverrides& overrides) {
  const auto start = std::chrono::steady_clock::now();
  warn_of_threads(context);
  LoadedModel loaded;
  loaded.found = find_model(context, request.positional);
  // Outlives the tokenizer's thread also where the engine throws: `text` is joined before it goes.
  const std::shared_ptr<model::Model> model = model::Model::open(loaded.found.path);
  double text_ms = 0;
  std::future<std::unique_ptr<model::ModelText>> text;
  if (request.needs_text)
    text = std::async(std::launch::async, [&model, &text_ms, &request] {
      const auto text_start = std::chrono::steady_clock::now();
      auto made = std::make_unique<model::ModelText>(*model, request.called);
      text_ms = ms_since(text_start);
      return made;
    });

  decode::EngineOptions options = engine_options(context, overrides);
  options.gathered_max = request.gathered_max;
  options.sequences_max = request.sequences_max;
  if (options.context == 0 && request.context_wanted > 0)
    options.context = std::min(request.context_wanted, model->spec().context);
  const std::optional<formats::Adapter> adapter = adapter_of(context, loaded.found, *model, overrides);
  if (adapter) {
    const formats::Adapter* const one[] = {&*adapter};
    options.adapter_slots = 1;
    options.adapter_rank_max = adapter->rank_max();
    options.adapter_bytes = decode::adapter_bytes(one);
  }
  std::unique_ptr<graph::Executor> executor = make_executor(context, *model, overrides);
  if (request.tune) request.tune(*model, *executor, options);
  loaded.times.open = ms_since(start);
  if (request.first) {
    loaded.text = text.get();
    request.first(loaded.found.name, *loaded.text);
  }
  {
    std::optional<Progress> bar;
    if (!request.progress) bar.emplace(context, "loading " + loaded.found.name, Progress::Unit::share);
    loaded.engine =
        std::make_unique<decode::Engine>(model, std::move(executor), options, [&](int64_t done, int64_t total) {
          if (bar) bar->show(done, total);
          else request.progress(done, total);
        });
  }
  loaded.times.engine = loaded.engine->times();
  if (adapter) {
    loaded.engine->set_default_adapter(loaded.engine->mount_adapter(*adapter));
    loaded.adapter = adapter->id;
  }
  if (request.needs_text) {
    const auto wait = std::chrono::steady_clock::now();
    if (text.valid()) loaded.text = text.get();
    loaded.times.text = text_ms;
    loaded.times.text_wait = ms_since(wait);
  }
  if (options.context == 0 && loaded.engine->context() < loaded.engine->spec().context)
    context.note("{}: memory holds {} of the {} positions that it was trained for", loaded.found.name,
                 loaded.engine->context(), loaded.engine->spec().context);
  for (const std::string& name : loaded.engine->model().weights().surplus())
    context.detail("{}: tensor {} is not used", loaded.found.name, name);
  loaded.times.total = ms_since(start);
  const LoadTimes& t = loaded.times;
  context.detail(
      "load {:.0f} ms: open {:.0f}, admission {:.0f}, weights {:.0f}, plans {:.0f}; tokenizer {:.0f} beside them, "
      "waited for {:.0f}",
      t.total, t.open, t.engine.admission, t.engine.weights, t.engine.plans, t.text, t.text_wait);
  return loaded;
}

json::Object times_json(const LoadTimes& times) {
  json::Object o;
  o["total_ms"] = times.total;
  o["open_ms"] = times.open;
  o["admission_ms"] = times.engine.admission;
  o["weights_ms"] = times.engine.weights;
  o["plans_ms"] = times.engine.plans;
  o["tokenizer_ms"] = times.text;
  o["tokenizer_wait_ms"] = times.text_wait;
  return o;
}

int64_t peak_rss_bytes() {
  // Not getrusage(): its figure begins with that of the program that started this one.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::strtoll(line.c_str() + 6, nullptr, 10);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace hearth::cli
