#include "cli/model_settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/fs.h"
#include "cli/setting_text.h"
#include "cli/units.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

const Flag& flag_of(const std::string& file, const hub::TomlEntry& entry) {
  std::vector<std::string> names;
  for (const Flag& flag : kModelSettings) {
    if (flag.name == with_dashes(entry.key)) return flag;
    names.emplace_back(flag.name);
  }
  const std::vector<std::string> near = hub::nearest(with_dashes(entry.key), names, 1);
  fail(ErrorKind::invalid_argument, "{}:{}: unknown setting '{}' of a model; {}", file, entry.line, entry.key,
       near.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", near[0]));
}

void take(ModelSettings& table, const Flag& flag, const std::string& text) {
  if (flag.name == "alias") return;  // the store's
  if (flag.name == "default") table.is_default = text == "true";
  else if (flag.name == "pinned") table.pinned = text == "true";
  else if (flag.name == "ttl")
    table.ttl = std::chrono::milliseconds(static_cast<int64_t>(*parse_duration(text) * 1000));
  else table.worker_words.insert(table.worker_words.end(), {"--" + std::string(flag.name), text});
}

// The path of what an alias means; empty: it is not here.
std::filesystem::path path_of(const hub::Store& store, const std::string& target) {
  try {
    return store.find(target).path;
  } catch (const Error&) {
    return {};  // told where it is used, and for a table at the start
  }
}

// One alias, one model; and none takes the place of a model that is called so.
void check_aliases(const hub::Store& store, const std::vector<hub::Alias>& aliases) {
  const std::string file = store.aliases_file().string();
  hub::Store unaliased = store;
  unaliased.hold({});
  const std::vector<hub::Snapshot> stored = aliases.empty() ? std::vector<hub::Snapshot>() : unaliased.list();
  for (size_t i = 0; i < aliases.size(); ++i) {
    const hub::Alias& one = aliases[i];
    for (size_t k = 0; k < i; ++k) {
      const hub::Alias& other = aliases[k];
      if (other.name == one.name && other.target != one.target)
        fail(ErrorKind::invalid_argument, "{}:{}: alias {}: it means {} already (line {}), and cannot mean {} too",
             file, one.line, one.name, other.target, other.line, one.target);
    }
    const bool is_name = std::ranges::any_of(stored, [&](const auto& model) { return model.repo == one.name; });
    if (is_name && path_of(unaliased, one.target) != path_of(unaliased, one.name))
      fail(ErrorKind::invalid_argument, "{}:{}: alias {}: a model here is called so, and it cannot mean {}", file,
           one.line, one.name, one.target);
  }
}

}  // namespace

ModelsFile ModelsFile::read(const hub::Store& store) {
  ModelsFile models;
  const std::filesystem::path path = store.aliases_file();
  const std::string name = path.string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return models;
  models.aliases_ = hub::read_aliases(path);
  check_aliases(store, models.aliases_);
  std::vector<ModelSettings>& tables = models.tables_;
  for (const hub::TomlEntry& entry : hub::parse_toml(io::real_fs().read_file(path, size_t{1} << 20), name)) {
    if (entry.table.empty()) continue;  // an alias
    auto table =
        std::find_if(tables.begin(), tables.end(), [&](const ModelSettings& t) { return t.table == entry.table; });
    if (table == tables.end())
      table =
          tables.insert(table, {.table = entry.table, .line = entry.line, .path = {}, .ttl = {}, .worker_words = {}});
    const Flag& flag = flag_of(name, entry);
    const ModelSettings* marked = models.default_model();
    take(*table, flag, setting_text(name, entry, flag));
    if (table->is_default && marked && marked != &*table)
      fail(ErrorKind::invalid_argument, "{}:{}: default: {} is marked already, one may be", name, entry.line,
           marked->table);
  }
  for (ModelSettings& table : tables) {
    try {
      table.path = store.find(table.table).path;
    } catch (const Error& error) {
      models.absent_.push_back(
          fmt::format("{}:{}: settings of a model that is not here: {}", name, table.line, error.what()));
    }
  }
  return models;
}

const ModelSettings* ModelsFile::of(const hub::FoundModel& model) const {
  for (const ModelSettings& table : tables_)
    if (table.path == model.path || (table.path.empty() && (table.table == model.name || table.table == model.repo)))
      return &table;
  return nullptr;
}

const ModelSettings* ModelsFile::default_model() const {
  for (const ModelSettings& table : tables_)
    if (table.is_default) return &table;
  return nullptr;
}

}  // namespace hearth::cli
