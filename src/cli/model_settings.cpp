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

}  // namespace

ModelsFile ModelsFile::read(const hub::Env& env, const hub::Store& store) {
  ModelsFile models;
  const std::filesystem::path path = hub::config_folder(env) / "models.toml";
  const std::string name = path.string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return models;
  std::vector<ModelSettings>& tables = models.tables_;
  for (const hub::TomlEntry& entry : hub::parse_toml(io::real_fs().read_file(path, size_t{1} << 20), name)) {
    const bool is_name = entry.value.string() && !entry.value.string()->empty();
    if ((entry.table.empty() || entry.key == "alias") && !is_name)
      fail(ErrorKind::invalid_argument, "{}:{}: {}: expected a name as a string, found {}", name, entry.line, entry.key,
           entry.value.string() ? "an empty one" : entry.value.type_name());
    if (entry.table.empty()) continue;  // an alias: the store's
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
