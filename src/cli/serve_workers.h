// The programs that a server starts: this one, as `hearth worker`, to serve a model or to read parts of it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/model_settings.h"
#include "cli/serve_flags.h"
#include "server/front/models.h"

namespace hearth::cli {

// Thread-safe.
class Workers {
 public:
  // Reads models.toml. Throws as ModelsFile::read.
  explicit Workers(const Context& context);

  // The same with flags that were read again, of which those of kFixedFlags stay as they were at the start, and with
  // models.toml as it is now. Throws as the constructor.
  std::shared_ptr<const Workers> with(const Args& args) const;

  const ModelsFile& settings() const { return settings_; }
  int64_t memory_budget() const;  // of all workers together, as it was at the start

  server::WorkerCommand command(const hub::FoundModel& model, int64_t budget, std::vector<std::string> words) const;
  // The memory's speed is measured for the first of them.
  server::WorkerCommand headers(const hub::FoundModel& model, int64_t budget, std::optional<int64_t> positions) const;
  server::ModelRules rules(const hub::FoundModel& model) const;

 private:
  struct Start;
  Workers(std::shared_ptr<Start> start, WorkerArguments arguments, ModelsFile settings);

  std::shared_ptr<Start> start_;
  WorkerArguments arguments_;
  ModelsFile settings_;
};

}  // namespace hearth::cli
