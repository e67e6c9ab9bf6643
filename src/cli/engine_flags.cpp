#include "cli/engine_flags.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <future>

#include "base/digest.h"
#include "base/team.h"
#include "cli/progress.h"
#include "cpu/executor.h"

namespace hearth::cli {

int thread_count(const Context& context) {
  if (const auto n = context.args().integer("threads")) return static_cast<int>(*n);
  return cpus_allowed();
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
  options.memory_budget = args.bytes("memory-budget").value_or(0);
  return options;
}

// Names one state of a model's files, all parts of it; nullopt when one of them is gone.
static std::optional<std::string> state_of(const model::Model& model) {
  std::string state;
  for (const MappedFile& file : model.weights().files()) {
    struct stat info{};
    if (::stat(file.path().c_str(), &info) != 0) return std::nullopt;
    state += fmt::format("{}-{}-{}-{}.{:09}\n", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                         info.st_mtim.tv_nsec);
  }
  return sha256_hex(state);
}

std::unique_ptr<graph::Executor> make_executor(const Context& context, const model::Model& model,
                                               const LoadOverrides& overrides) {
  if (overrides.executor.value_or(*context.args().text("executor")) == "reference")
    return graph::make_reference_executor(thread_count(context));
  cpu::CpuOptions options{.threads = thread_count(context)};
  if (const auto state = state_of(model)) {
    options.pack_cache_dir = hub::cache_folder(context.env()) / "packed";
    options.pack_cache_key = *state;
  }
  return cpu::make_cpu_executor(options);
}

LoadedModel load_model(const Context& context, const LoadRequest& request, const LoadOverrides& overrides) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded;
  loaded.found = find_model(context, request.positional);
  // Outlives the tokenizer's thread also where the engine throws: `text` is joined before it goes.
  const std::shared_ptr<model::Model> model = model::Model::open(loaded.found.path);
  std::future<std::unique_ptr<ModelText>> text;
  if (request.needs_text)
    text = std::async(std::launch::async, [&model] { return std::make_unique<ModelText>(*model); });

  decode::EngineOptions options = engine_options(context, overrides);
  options.gathered_max = request.gathered_max;
  if (options.context == 0 && request.context_wanted > 0)
    options.context = std::min(request.context_wanted, model->spec().context);
  std::unique_ptr<graph::Executor> executor = make_executor(context, *model, overrides);
  {
    Progress progress(context, "loading " + loaded.found.name);
    loaded.engine = std::make_unique<decode::Engine>(model, std::move(executor), options,
                                                     [&](int64_t done, int64_t total) { progress.show(done, total); });
  }
  if (request.needs_text) loaded.text = text.get();
  if (options.context == 0 && loaded.engine->context() < loaded.engine->spec().context)
    context.note("{}: memory holds {} of the {} positions that it was trained for", loaded.found.name,
                 loaded.engine->context(), loaded.engine->spec().context);
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
