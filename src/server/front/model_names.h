// Which models clients may ask for, and what the names in their requests mean (spec server 6, 7). All that is said
// here to a client names no folder.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hub/store.h"

namespace hearth::server {

struct NameOptions {
  std::string default_model;         // named on the command line: loaded at start, pinned
  std::string served_name;           // what it is called; empty: its own name
  std::vector<std::string> allowed;  // names that may be loaded; empty: all of the store
  bool only_default = false;         // no other may be loaded (a bind beyond loopback without an allow-list)
  std::vector<hub::Alias> aliases;   // of models.toml
  bool any_model = false;            // unknown names mean the default one
};

// What a request's model means: "name:adapter" names an adapter too, where the part behind ":" is none of the model's
// own files.
struct ModelChoice {
  std::string id, adapter;
};

// A model that may be asked for, and where it lies.
struct LocalModel {
  std::string id;
  hub::FoundModel found;
  bool serving = false;  // the default one
};

// Thread-safe. Every call but the constructor throws ClientError alone.
class ModelNames {
 public:
  // Looks for the default model and the allowed ones. Throws as hub::Store::find and check(), for this machine's own
  // person.
  ModelNames(const NameOptions& options, hub::Store store);

  std::string default_id() const;  // empty: there is none

  // Empty: the default model. Throws not_found for an unknown name (with the names there are), for one that several
  // models have (with them), for a revision or a file that is not there; corrupt_file for a snapshot that is not whole,
  // io for a store that cannot be read.
  ModelChoice choose(const std::string& name) const;

  // Of a chosen id. Throws as choose().
  hub::FoundModel found(const std::string& id) const;
  // From now on the id is known, whatever becomes of the store.
  void know(const std::string& id, const hub::FoundModel& found);

  std::vector<LocalModel> known() const;  // by id: those of the command line, and those that were asked for
  // Those, and all of the store that may be asked for, each file of a repository with several of them; the default one
  // first. Looks at the store, opens no model.
  std::vector<LocalModel> all() const;

  // Throws Error{invalid_argument} for an alias that is the name of another model of the command line, and as the
  // constructor for another default model than the one at hand.
  void check(const NameOptions& options) const;
  void check_default(const NameOptions& options) const;  // the second half of it
  // any_model, aliases and default_model; checked before. The default one of before keeps its place among those that
  // may be asked for, if others than the default one may.
  void reload(const NameOptions& options);

 private:
  LocalModel next_default(const NameOptions& options, const hub::Store& store) const;
  static LocalModel default_of(const NameOptions& options, const hub::Store& store);
  std::optional<ModelChoice> known_as(const std::string& name) const;
  std::string known_by(const std::string& name, const hub::FoundModel& found) const;
  std::optional<ModelChoice> stored_as(const std::string& name, bool or_adapter) const;
  hub::Store store() const;
  std::vector<hub::FoundModel> stored() const;
  std::vector<std::string> names() const;
  [[noreturn]] void tell(const Error& error) const;

  const bool whole_store_, only_default_;
  mutable std::mutex mutex_;
  std::string default_id_, default_name_;  // what it is called, and how it was named
  hub::Store store_;
  mutable std::map<std::string, hub::FoundModel> known_;
  bool any_model_;
};

}  // namespace hearth::server
