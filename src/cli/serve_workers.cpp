#include "cli/serve_workers.h"

#include <mutex>
#include <utility>

#include "base/error.h"
#include "cli/fit_report.h"
#include "decode/memory.h"

namespace hearth::cli {
namespace {

// What a worker may see of the environment: places and settings, no secrets.
std::vector<std::string> worker_environment(const hub::Env& env) {
  std::vector<std::string> list;
  for (const char* name : {"HOME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                           "XDG_STATE_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "OMP_NUM_THREADS",
                           "HEARTH_ISA", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
    if (const auto value = env(name); value && !value->empty()) list.push_back(fmt::format("{}={}", name, *value));
  // Its sandbox keeps it from the password table.
  if (env("HOME").value_or("").empty()) try {
      list.push_back("HOME=" + hub::home_directory(env).string());
    } catch (const Error&) {
      // Without one it may do all the same: the other variables can name every folder.
    }
  return list;
}

}  // namespace

struct Workers::Start {
  Start(Args flags, hub::Store models) : args(std::move(flags)), store(std::move(models)) {}

  Args args;
  hub::Store store;
  std::vector<std::string> environment;
  int threads = 0;
  std::once_flag measured;
  double ram_gbs = 0;
};

Workers::Workers(const Context& context)
    : start_(std::make_shared<Start>(context.args(), hub::Store::from_env(context.env()))),
      arguments_(worker_arguments(context.args(), context.args())),
      settings_(ModelsFile::read(start_->store)) {
  start_->environment = worker_environment(context.env());
  start_->threads = thread_count(context);
}

Workers::Workers(std::shared_ptr<Start> start, WorkerArguments arguments, ModelsFile settings)
    : start_(std::move(start)), arguments_(std::move(arguments)), settings_(std::move(settings)) {}

std::shared_ptr<const Workers> Workers::with(const Args& args) const {
  return std::shared_ptr<const Workers>(
      new Workers(start_, worker_arguments(args, start_->args), ModelsFile::read(start_->store)));
}

int64_t Workers::memory_budget() const {
  return start_->args.bytes("memory-budget").value_or(decode::default_memory_budget());
}

server::WorkerCommand Workers::command(const hub::FoundModel& model, int64_t budget,
                                       std::vector<std::string> words) const {
  const ModelSettings* own = settings_.of(model);
  server::WorkerCommand command;
  command.argv = {"/proc/self/exe", "worker",          model.path.string(),   "--name",
                  model.name,       "--memory-budget", std::to_string(budget)};
  for (const auto& more : {arguments_.with(own ? own->worker_words : std::vector<std::string>()), words})
    command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.environment = start_->environment;
  return command;
}

server::WorkerCommand Workers::headers(const hub::FoundModel& model, int64_t budget,
                                       std::optional<int64_t> positions) const {
  std::call_once(start_->measured, [&] { start_->ram_gbs = memory_gbs(start_->threads); });
  std::vector<std::string> words = {"--role", "headers", "--ram-gbs", fmt::format("{:.3f}", start_->ram_gbs)};
  words.insert(words.end(), {"--pack-cache", "0"});  // its sandbox keeps it from the folder, and it packs nothing
  if (positions) words.insert(words.end(), {"--ctx", std::to_string(*positions)});
  return command(model, budget, std::move(words));
}

server::ModelRules Workers::rules(const hub::FoundModel& model) const {
  const ModelSettings* own = settings_.of(model);
  return own ? server::ModelRules{.pinned = own->pinned, .ttl = own->ttl} : server::ModelRules();
}

}  // namespace hearth::cli
