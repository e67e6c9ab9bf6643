#include "hub/store.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/fs.h"
#include "hub/nearest.h"

namespace hearth::hub {
namespace fs = std::filesystem;
namespace {

bool looks_like_path(const std::string& name) {
  return name.starts_with('/') || name.starts_with("./") || name.starts_with("../") || name.starts_with('~') ||
         name.ends_with(".gguf") || name.ends_with('/');
}

bool has_gguf_magic(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, 4);
  return file.gcount() == 4 && std::string_view(magic, 4) == "GGUF";
}

// Model files at the top of a folder that a person named.
struct FolderContents {
  bool config = false, safetensors = false;
  Snapshot listing;  // for ggufs() alone
};

FolderContents contents_of(const fs::path& folder) {
  FolderContents contents;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    contents.config |= name == "config.json";
    // An index promises weights: what it names and is not there is told when the model is opened.
    contents.safetensors |= name.ends_with(".safetensors") || name == "model.safetensors.index.json";
    if (name.ends_with(".gguf")) contents.listing.files.push_back({name, "", 0});
  }
  if (error) fail(ErrorKind::io, "cannot read {}: {}", folder.string(), error.message());
  return contents;
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t kMax = 12;
  const std::vector<std::string> first(names.begin(), names.begin() + std::ptrdiff_t(std::min(names.size(), kMax)));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     names.size() > kMax ? fmt::format(" and {} more", names.size() - kMax) : "");
}

// The one file of `ggufs` that `part` names; all of them when it names none or several.
std::vector<std::string> choose(const std::vector<std::string>& ggufs, const std::string& part) {
  std::vector<std::string> hits;
  for (const std::string& file : ggufs) {
    if (file == part) return {file};
    if (contains_ignoring_case(file, part)) hits.push_back(file);
  }
  return hits;
}

}  // namespace

Store::Store(fs::path cache, fs::path config, Env env)
    : cache_(std::move(cache)), config_(std::move(config)), env_(std::move(env)) {}

Store Store::from_env(const Env& env) { return Store(hub_cache(env), config_folder(env), env); }

namespace {

void check_name(const std::string& name) {
  if (name.empty()) fail(ErrorKind::invalid_argument, "the model's name is empty");
  if (name.find('\0') != name.npos) fail(ErrorKind::invalid_argument, "the model's name holds a NUL character");
}

// What stands before and behind the last ':'.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos) return {name, ""};
  if (colon == 0 || colon + 1 == name.size())
    fail(ErrorKind::invalid_argument, "'{}': a name and a file or adapter stand on the sides of ':'", name);
  return {name.substr(0, colon), name.substr(colon + 1)};
}

}  // namespace

FoundModel Store::find_stored(const std::string& name) const {
  check_name(name);
  const auto [base, part] = parts_of(name);
  if (auto found = find_name(base, part, true)) return *found;
  unknown(base);
}

FoundModel Store::find(const std::string& name) const {
  check_name(name);
  if (auto found = find_path(name)) return *found;
  const auto [base, part] = parts_of(name);
  if (!part.empty())
    if (auto found = find_path(base)) {
      found->adapter = part;
      return *found;
    }
  if (looks_like_path(base)) {
    const fs::path path = expand_home(base, env_);
    std::vector<std::string> beside;
    std::error_code error;
    for (fs::directory_iterator it(path.parent_path().empty() ? "." : path.parent_path(), error), end;
         !error && it != end && beside.size() < 10'000; it.increment(error))
      beside.push_back(it->path().filename().string());
    const std::vector<std::string> near = nearest(path.filename().string(), beside);
    fail(ErrorKind::not_found, "{}: no such file or folder{}; hearth ls shows the store", base,
         near.empty() ? "" : fmt::format("; beside it is {}", fmt::join(near, ", ")));
  }
  if (auto found = find_name(base, part, true)) return *found;
  std::error_code ignored;
  if (fs::exists(base, ignored))
    fail(ErrorKind::invalid_argument, "{} holds no model: neither config.json with *.safetensors nor a .gguf file",
         base);
  unknown(base);
}

std::optional<FoundModel> Store::find_path(const std::string& name) const {
  const fs::path path = expand_home(name, env_);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found && looks_like_path(name))
    fail(ErrorKind::io, "{}: {}", name, error.message());
  if (status.type() == fs::file_type::not_found && looks_like_path(name) && fs::is_symlink(path, error))
    fail(ErrorKind::not_found, "{} is a link to {}, which is not there", name, fs::read_symlink(path, error).string());
  if (fs::exists(status) && !fs::is_directory(status) && !fs::is_regular_file(status) && looks_like_path(name))
    fail(ErrorKind::invalid_argument, "{} is neither a file nor a folder", name);
  FoundModel found{.path = path, .format = ModelFormat::gguf, .name = name, .repo = "", .revision = "", .adapter = ""};
  if (fs::is_directory(status)) {
    const FolderContents contents = contents_of(path);
    if (contents.config && contents.safetensors) {
      found.format = ModelFormat::safetensors;
      return found;
    }
    const std::vector<std::string> ggufs = contents.listing.ggufs();
    if (ggufs.size() > 1)
      throw AmbiguousName(
          fmt::format("{} holds {} .gguf files, name one of them: {}", name, ggufs.size(), list_of(ggufs)));
    if (ggufs.size() == 1) {
      found.path = path / ggufs[0];
      return found;
    }
    if (looks_like_path(name))
      fail(ErrorKind::invalid_argument, "{} holds no model: neither config.json with *.safetensors nor a .gguf file",
           name);
    return std::nullopt;  // a folder that happens to have a model's name
  }
  if (fs::is_regular_file(status)) {
    if (name.ends_with(".gguf") || has_gguf_magic(path)) return found;
    if (name.ends_with(".safetensors"))
      fail(ErrorKind::invalid_argument, "{} is one file of a model: name its folder", name);
    if (name.find('/') != name.npos)
      fail(ErrorKind::invalid_argument, "{} is no model: it does not begin with GGUF", name);
  }
  return std::nullopt;
}

std::optional<FoundModel> Store::find_name(const std::string& name, const std::string& part, bool follow_alias) const {
  const size_t at = name.find('@');
  const std::string repo = name.substr(0, at);
  const std::string revision = at == name.npos ? "" : name.substr(at + 1);
  if (at != name.npos && revision.empty())
    fail(ErrorKind::invalid_argument, "'{}': a revision stands behind '@'", name);
  if (is_repo_name(repo) && !read_snapshots(cache_, repo).empty()) return open_repo(repo, revision, part);
  if (follow_alias)
    if (const auto target = alias(name)) {
      const std::string whole = part.empty() ? *target : *target + ":" + part;
      if (auto found = find_path(*target)) {
        found->adapter = part;
        return found;
      }
      const size_t colon = target->rfind(':');
      if (part.empty() && colon != target->npos) {
        if (auto found = find_name(target->substr(0, colon), target->substr(colon + 1), false)) return found;
      } else if (auto found = find_name(*target, part, false)) {
        return found;
      }
      fail(ErrorKind::not_found, "the alias {} of {} means {}, which is not here", name, aliases_file().string(),
           whole);
    }
  std::vector<std::string> hits;
  for (const std::string& candidate : model_names())
    if (contains_ignoring_case(candidate, repo)) hits.push_back(candidate);
  if (hits.size() > 1)
    throw AmbiguousName(fmt::format("'{}' names {} models: {}; say which", repo, hits.size(), list_of(hits)));
  if (hits.size() == 1) return open_repo(hits[0], revision, part);
  return std::nullopt;
}

FoundModel Store::open_repo(const std::string& repo, const std::string& revision, const std::string& part) const {
  const std::vector<Snapshot> snapshots = read_snapshots(cache_, repo);
  const Snapshot* chosen = nullptr;
  if (revision.empty()) {
    chosen = canonical(cache_, snapshots);
  } else {
    const std::string wanted = read_ref(cache_, repo, revision).value_or(revision);
    std::vector<const Snapshot*> hits;
    for (const Snapshot& snapshot : snapshots) {
      if (snapshot.revision == wanted) chosen = &snapshot;
      if (wanted.size() >= 7 && snapshot.revision.starts_with(wanted)) hits.push_back(&snapshot);
    }
    if (!chosen && hits.size() == 1) chosen = hits[0];
    if (!chosen) {
      std::vector<std::string> names;
      for (const Snapshot& snapshot : snapshots) names.push_back(snapshot.revision);
      fail(ErrorKind::not_found, "{} has no revision {} here; it has {}", repo, revision, list_of(names));
    }
  }
  if (!chosen) fail(ErrorKind::not_found, "{} has no snapshot in {}", repo, cache_.string());
  if (!chosen->format)
    fail(ErrorKind::invalid_argument, "{} holds no model: neither config.json with *.safetensors nor a .gguf file",
         chosen->folder.string());
  if (!chosen->problem.empty())
    fail(ErrorKind::corrupt_file, "{} is incomplete: {}", chosen->folder.string(), chosen->problem);

  FoundModel found{.path = chosen->folder,
                   .format = *chosen->format,
                   .name = repo,
                   .repo = repo,
                   .revision = chosen->revision,
                   .adapter = ""};
  if (found.format == ModelFormat::safetensors) {
    found.adapter = part;
    return found;
  }
  const std::vector<std::string> ggufs = chosen->ggufs();
  const std::vector<std::string> hits = part.empty() ? ggufs : choose(ggufs, part);
  if (hits.size() == 1) {
    found.path = chosen->folder / hits[0];
    if (!part.empty()) found.name = repo + ":" + hits[0];
    return found;
  }
  if (ggufs.size() == 1) {  // nothing to choose, so `part` is an adapter
    found.path = chosen->folder / ggufs[0];
    found.adapter = part;
    return found;
  }
  if (part.empty())
    throw AmbiguousName(
        fmt::format("{} holds {} .gguf files; choose one as {}:FILE: {}", repo, ggufs.size(), repo, list_of(ggufs)));
  if (!hits.empty())
    throw AmbiguousName(fmt::format("'{}' names several of the .gguf files of {}: {}", part, repo, list_of(hits)));
  fail(ErrorKind::not_found, "'{}' names none of the .gguf files of {}: {}", part, repo, list_of(ggufs));
}

std::vector<Snapshot> Store::list(bool all_revisions) const {
  std::vector<Snapshot> models;
  for (const std::string& repo : list_repos(cache_)) {
    try {
      const std::vector<Snapshot> snapshots = read_snapshots(cache_, repo);
      const Snapshot* main = canonical(cache_, snapshots);
      for (const Snapshot& snapshot : snapshots)
        if ((all_revisions || &snapshot == main) && snapshot.format) models.push_back(snapshot);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      models.push_back({.repo = repo,
                        .revision = "",
                        .folder = cache_ / repo_folder(repo),
                        .files = {},
                        .bytes = 0,
                        .format = {},
                        .problem = error.what()});
    }
  }
  return models;
}

std::optional<std::string> Store::alias(const std::string& name) const {
  const Alias* found = nullptr;
  const std::vector<Alias> aliases = held_ ? *held_ : read_aliases(aliases_file(), name);
  for (const Alias& one : aliases) {
    if (one.name != name) continue;
    if (found && found->target != one.target)
      fail(ErrorKind::invalid_argument, "{}:{}: alias {}: it means {} already (line {}), and cannot mean {} too",
           aliases_file().string(), one.line, name, found->target, found->line, one.target);
    found = &one;
  }
  return found ? std::optional(found->target) : std::nullopt;
}

std::vector<std::string> Store::model_names() const {
  std::vector<std::string> names;
  for (const Snapshot& model : list()) names.push_back(model.repo);
  return names;
}

void Store::unknown(const std::string& name) const {
  const std::vector<std::string> names = model_names();
  std::vector<std::string> near = nearest(name, names);
  // "smolm2" should find "org/SmolLM2-135M": compare with the name's own words too.
  for (const std::string& candidate : names) {
    const std::string tail = candidate.substr(candidate.find('/') + 1);
    const std::string head = tail.substr(0, tail.find_first_of("-_."));
    if (near.size() < 3 && (!nearest(name, {tail}).empty() || !nearest(name, {head}).empty()) &&
        std::find(near.begin(), near.end(), candidate) == near.end())
      near.push_back(candidate);
  }
  if (!near.empty())
    throw UnknownName(fmt::format("no model '{}' here; did you mean {}?", name, fmt::join(near, " or ")));
  if (names.empty())
    throw UnknownName(fmt::format("no model '{}': the store {} is empty; add one with: hearth import FILE.gguf", name,
                                  cache_.string()));
  throw UnknownName(fmt::format("no model '{}' here; there is {}", name, list_of(names)));
}

}  // namespace hearth::hub
