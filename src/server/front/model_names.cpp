#include "server/front/model_names.h"

#include <algorithm>
#include <functional>

#include "base/log.h"
#include "hub/local_models.h"
#include "server/client_sentence.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

// A name that is looked up as a path is no business of a client's.
bool looks_like_path(const std::string& name) {
  return name.starts_with('/') || name.starts_with('.') || name.starts_with('~') ||
         name.find("..") != std::string::npos;
}

// What clients call a model: never where it lies.
std::string id_of(const hub::FoundModel& found) {
  if (!found.repo.empty()) return found.name;
  const std::filesystem::path name =
      found.path.has_filename() ? found.path.filename() : found.path.parent_path().filename();
  return name.extension() == ".gguf" ? name.stem().string() : name.string();
}

}  // namespace

ModelNames::ModelNames(const NameOptions& options, hub::Store store)
    : whole_store_(options.allowed.empty() && !options.only_default),
      only_default_(options.allowed.empty() && options.only_default),
      store_(std::move(store)),
      any_model_(options.any_model) {
  store_.hold(options.aliases);
  if (!options.default_model.empty()) {
    LocalModel model = default_of(options, store_);
    default_id_ = model.id;
    default_name_ = options.default_model;
    known_.emplace(model.id, std::move(model.found));
  }
  for (const std::string& name : options.allowed) {
    hub::FoundModel found = store_.find(name);
    const std::string id = id_of(found);
    known_.emplace(id, std::move(found));
  }
  check(options);
}

LocalModel ModelNames::default_of(const NameOptions& options, const hub::Store& store) {
  LocalModel model{.id = options.served_name, .found = store.find(options.default_model), .serving = true};
  if (!model.found.adapter.empty())
    fail(ErrorKind::invalid_argument, "{}: an adapter is mounted by --adapter DIR, name the model alone",
         options.default_model);
  if (model.id.empty()) model.id = id_of(model.found);
  return model;
}

std::string ModelNames::default_id() const {
  const std::lock_guard lock(mutex_);
  return default_id_;
}

void ModelNames::check_default(const NameOptions& options) const {
  hub::Store store = this->store();
  store.hold(options.aliases);
  const LocalModel model = next_default(options, store);
  if (model.id.empty()) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(model.id); known != known_.end() && known->second.path != model.found.path)
    fail(ErrorKind::invalid_argument, "{}: until its next start this server means {} by {}", options.default_model,
         known->second.path.string(), model.id);
}

void ModelNames::check(const NameOptions& options) const {
  check_default(options);
  hub::Store store = this->store();
  store.hold(options.aliases);
  for (const hub::Alias& alias : options.aliases) {
    std::filesystem::path path;
    {
      const std::lock_guard lock(mutex_);
      const auto known = known_.find(alias.name);
      if (known == known_.end()) continue;
      path = known->second.path;
    }
    std::filesystem::path meant;
    try {
      meant = store.find(alias.target).path;
    } catch (const Error&) {
      // It is not here; the name is another model's in any case.
    }
    if (meant != path)
      fail(ErrorKind::invalid_argument, "{}:{}: alias {}: {} is called so here, and it cannot mean {}",
           store.aliases_file().string(), alias.line, alias.name, path.string(), alias.target);
  }
}

// The model that the options make the default one; without an id where that is the one at hand.
LocalModel ModelNames::next_default(const NameOptions& options, const hub::Store& store) const {
  {
    const std::lock_guard lock(mutex_);
    if (options.default_model.empty() || options.default_model == default_name_) return {};
  }
  return default_of(options, store);
}

// A copy: looking at the disk may take a while.
hub::Store ModelNames::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

// What is wrong with the store is this machine's to know as it was said, and a client's without the folders.
void ModelNames::tell(const Error& error) const {
  log::warn("front", "{}", error.what());
  const hub::Store store = this->store();
  std::vector<std::filesystem::path> folders = {store.cache(), store.aliases_file().parent_path()};
  for (const hub::Alias& alias : store.held()) folders.emplace_back(alias.target);
  const std::string sentence = client_sentence(error.what(), folders);
  if (error.kind() == ErrorKind::invalid_argument) throw RequestError("model", fmt::format("model: {}", sentence));
  throw ClientError(error.kind(), sentence);
}

// Of the command line or the allow-list, or asked for before, by its own name.
std::optional<ModelChoice> ModelNames::known_as(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (name.empty() || name == "hearth/local" || name == "default") {
    if (default_id_.empty())
      throw ClientError(ErrorKind::not_found, "no model is named, and the server has no default one");
    return ModelChoice{default_id_, ""};
  }
  for (const auto& [id, found] : known_)
    if (id == name || found.name == name) return ModelChoice{id, ""};
  return std::nullopt;
}

// The id of what a name or an alias of the store means. Where its own name means nothing in the store, or another
// revision, the id is known from now on.
std::string ModelNames::known_by(const std::string& name, const hub::FoundModel& found) const {
  std::string id = id_of(found);
  if (!found.repo.empty()) {
    if (store().find_stored(found.name).revision == found.revision) return id;
    id += "@" + found.revision;
  }
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(id); known != known_.end() && known->second.path != found.path) id = name;
  known_.emplace(id, found);
  return id;
}

// Never a file where the server stands. or_adapter: what a repository has no file for may be an adapter.
std::optional<ModelChoice> ModelNames::stored_as(const std::string& name, bool or_adapter) const {
  if (!whole_store_ || looks_like_path(name)) return std::nullopt;
  try {
    const hub::FoundModel found = store().find_stored(name);
    return ModelChoice{known_by(name, found), found.adapter};
  } catch (const hub::UnknownName&) {
    return std::nullopt;
  } catch (const hub::AmbiguousName& error) {
    tell(error);
  } catch (const Error& error) {
    if (or_adapter && error.kind() == ErrorKind::not_found) return std::nullopt;
    tell(error);
  }
}

ModelChoice ModelNames::choose(const std::string& name) const {
  if (const auto choice = known_as(name)) return *choice;
  const size_t colon = name.rfind(':');
  std::optional<ModelChoice> with_adapter;
  if (colon != std::string::npos && colon > 0 && colon + 1 < name.size() &&
      (with_adapter = known_as(name.substr(0, colon))))
    with_adapter->adapter = name.substr(colon + 1);
  if (with_adapter && found(with_adapter->id).repo.empty()) return *with_adapter;  // only a repository has labels
  if (const auto choice = stored_as(name, with_adapter.has_value())) return *choice;
  if (with_adapter) return *with_adapter;
  {
    const std::lock_guard lock(mutex_);
    if (any_model_ && !default_id_.empty()) return {default_id_, ""};
  }
  const std::vector<std::string> there = names();
  throw ClientError(ErrorKind::not_found,
                    fmt::format("there is no model {}; there {} {}", name, there.size() == 1 ? "is" : "are",
                                there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
}

std::vector<hub::FoundModel> ModelNames::stored() const {
  try {
    return hub::local_models(store());
  } catch (const Error& error) {
    tell(error);
  }
}

std::vector<std::string> ModelNames::names() const {
  std::vector<std::string> names;
  for (const LocalModel& model : known()) names.push_back(model.id);
  for (const hub::FoundModel& found : whole_store_ ? stored() : std::vector<hub::FoundModel>())
    names.push_back(found.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

hub::FoundModel ModelNames::found(const std::string& id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
  }
  try {
    return store().find_stored(id);
  } catch (const Error& error) {
    tell(error);
  }
}

void ModelNames::know(const std::string& id, const hub::FoundModel& found) {
  const std::lock_guard lock(mutex_);
  known_.emplace(id, found);
}

std::vector<LocalModel> ModelNames::known() const {
  std::vector<LocalModel> models;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, found] : known_) models.push_back({id, found, id == default_id_});
  return models;
}

std::vector<LocalModel> ModelNames::all() const {
  std::vector<LocalModel> models = known();
  for (hub::FoundModel& found : whole_store_ ? stored() : std::vector<hub::FoundModel>()) {
    const bool is_known = std::ranges::any_of(models, [&](const auto& m) { return m.found.path == found.path; });
    if (!is_known) models.push_back({found.name, found, false});
  }
  std::ranges::stable_sort(models, std::greater(), &LocalModel::serving);
  return models;
}

void ModelNames::reload(const NameOptions& options) {
  hub::Store store = this->store();
  store.hold(options.aliases);
  LocalModel model;
  try {
    model = next_default(options, store);
  } catch (const Error& error) {  // it went since check()
    log::warn("front", "{}: {} stays the default model", error.what(), default_id());
  }
  const std::lock_guard lock(mutex_);
  any_model_ = options.any_model;
  store_ = std::move(store);
  if (model.id.empty()) return;
  if (only_default_ && model.id != default_id_) known_.erase(default_id_);
  default_id_ = model.id;
  default_name_ = options.default_model;
  known_.insert_or_assign(model.id, std::move(model.found));
}

}  // namespace hearth::server
