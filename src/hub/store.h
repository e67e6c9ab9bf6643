// The model store: finds a model by name (models.md item 1) and lists what is here. Reading only; import.h writes.
// Any thread; every call looks at the disk anew.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/aliases.h"
#include "hub/paths.h"
#include "hub/repo.h"

namespace hearth::hub {

struct FoundModel {
  std::filesystem::path path;  // the .gguf file, or the folder with config.json and *.safetensors
  ModelFormat format = ModelFormat::gguf;
  std::string name;            // for people: "org/name", "org/name:file", or the path as given
  std::string repo, revision;  // empty for a path
  std::string adapter;         // of "name:adapter"; empty without one. Callers that cannot mount it must refuse it.
};

// Nothing here is called so; not_found.
class UnknownName : public Error {
 public:
  explicit UnknownName(const std::string& message) : Error(ErrorKind::not_found, message) {}
};

// Several models, or files of one, are called so; not_found, and the sentence lists them.
class AmbiguousName : public Error {
 public:
  explicit AmbiguousName(const std::string& message) : Error(ErrorKind::not_found, message) {}
};

class Store {
 public:
  // `cache` is the hub cache, `config` the folder with models.toml (`alias = "target"` lines).
  Store(std::filesystem::path cache, std::filesystem::path config, Env env);
  static Store from_env(const Env& env);

  const std::filesystem::path& cache() const { return cache_; }
  std::filesystem::path aliases_file() const { return config_ / "models.toml"; }
  // From now on the aliases are these, whatever becomes of the file.
  void hold(std::vector<Alias> aliases) { held_ = std::move(aliases); }
  std::vector<Alias> held() const { return held_.value_or(std::vector<Alias>()); }

  // In this order: an existing path; org/repo[@revision]; an alias of models.toml; a unique case-insensitive part of a
  // stored name. revision is a ref, a snapshot's name, or at least 7 of its first characters. Behind a name,
  // ":part" chooses among several .gguf files (a case-insensitive part of one file's name) and is an adapter otherwise.
  // Throws UnknownName (with the nearest ones), AmbiguousName (with all candidates), Error{not_found} for a revision or
  // a file that is missing; Error{invalid_argument} for a path that holds no model, and for an alias of two models;
  // Error{corrupt_file} for a snapshot that lacks a file of its own index.
  FoundModel find(const std::string& name) const;
  // The same without the first: for names that come from elsewhere than this machine's own person.
  FoundModel find_stored(const std::string& name) const;

  // The canonical snapshot of every repository that holds a model, by name; with all_revisions every snapshot. One that
  // cannot be read has a problem and no format; Error{io} when the cache itself cannot.
  std::vector<Snapshot> list(bool all_revisions = false) const;

 private:
  std::optional<FoundModel> find_path(const std::string& name) const;
  std::optional<FoundModel> find_name(const std::string& name, const std::string& part, bool follow_alias) const;
  FoundModel open_repo(const std::string& repo, const std::string& revision, const std::string& part) const;
  std::optional<std::string> alias(const std::string& name) const;
  std::vector<std::string> model_names() const;
  [[noreturn]] void unknown(const std::string& name) const;

  std::filesystem::path cache_, config_;
  Env env_;
  std::optional<std::vector<Alias>> held_;
};

}  // namespace hearth::hub
