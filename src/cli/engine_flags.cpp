#include "cli/engine_flags.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <future>

#include "base/error.h"
#include "cli/progress.h"
#include "cpu/executor.h"

namespace hearth::cli {

int thread_count(const Context& context) {
  if (const auto n = context.args().integer("threads")) return static_cast<int>(*n);
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

decode::EngineOptions engine_options(const Context& context, const LoadOverrides& overrides) {
  const Args& args = context.args();
  decode::EngineOptions options;
  options.numerics = graph::parse_numerics(overrides.numerics.value_or(*args.text("numerics")));
  const std::string kv = overrides.kv.value_or(*args.text("kv"));
  if (kv == "bf16") options.kv = graph::KvFormat::bf16;
  if (kv == "q8") options.kv = graph::KvFormat::q8;
  if (kv == "q4") options.kv = graph::KvFormat::q4;
  if (kv == "f32") options.kv = graph::KvFormat::f32;
  options.context = args.integer("context").value_or(0);
  options.prefill_chunk = *args.integer("prefill-chunk");
  options.memory_budget = args.bytes("memory-budget").value_or(0);
  return options;
}

std::unique_ptr<graph::Executor> make_executor(const Context& context, const hub::FoundModel& found,
                                               const LoadOverrides& overrides) {
  if (overrides.executor.value_or(*context.args().text("executor")) == "reference")
    return graph::make_reference_executor(thread_count(context));
  cpu::CpuOptions options{.threads = thread_count(context)};
  // A packed copy belongs to one state of one file.
  struct stat info{};
  if (found.format == hub::ModelFormat::gguf && ::stat(found.path.c_str(), &info) == 0) {
    options.pack_cache_dir = hub::cache_folder(context.env()) / "packed";
    options.pack_cache_key = fmt::format("{}-{}-{}-{}", info.st_dev, info.st_ino, info.st_size,
                                         info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec);
  }
  return cpu::make_cpu_executor(options);
}

LoadedModel load_model(const Context& context, const LoadRequest& request, const LoadOverrides& overrides) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  loaded.found = find_model(context, request.positional);
  std::unique_ptr<model::Model> model = model::Model::open(loaded.found.path);
  const model::Model& opened = *model;
  std::future<std::unique_ptr<ModelText>> text;
  if (request.needs_text)
    text = std::async(std::launch::async, [&opened] { return std::make_unique<ModelText>(opened); });

  decode::EngineOptions options = engine_options(context, overrides);
  options.gathered_max = request.gathered_max;
  if (options.context == 0 && request.context_at_least > 0)
    options.context = std::min(request.context_at_least, opened.spec().context);
  std::unique_ptr<graph::Executor> executor = make_executor(context, loaded.found, overrides);
  {
    Progress progress(context, "loading " + loaded.found.name);
    loaded.engine = std::make_unique<decode::Engine>(std::move(model), std::move(executor), options,
                                                     [&](int64_t done, int64_t total) { progress.show(done, total); });
  }
  if (request.needs_text) loaded.text = text.get();
  for (const std::string& name : loaded.engine->model().weights().surplus())
    context.detail("{}: tensor {} is not used", loaded.found.name, name);
  loaded.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace hearth::cli
