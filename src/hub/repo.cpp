#include "hub/repo.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"

namespace hearth::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "models--";
constexpr size_t kIndexBytesMax = size_t{64} << 20;

bool is_name_part(std::string_view part) {
  if (part.empty() || part.size() > 96 || part.find("..") != part.npos || part.find("--") != part.npos) return false;
  for (const char end : {part.front(), part.back()})
    if (end == '-' || end == '.') return false;
  return std::all_of(part.begin(), part.end(),
                     [](char c) { return ascii::is_alnum(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_blob_name(std::string_view name) {
  return (name.size() == 40 || name.size() == 64) && name.find_first_not_of("0123456789abcdef") == name.npos;
}

// The blob that a snapshot's link at depth `depth` (0 at the top) names: "../../blobs/<name>" with one more ".." a
// level. Every other shape is foreign and is not followed.
std::string blob_of_link(const std::string& target, int depth) {
  std::string_view rest = target;
  for (int i = 0; i < depth + 2; ++i) {
    if (!rest.starts_with("../")) return "";
    rest.remove_prefix(3);
  }
  if (!rest.starts_with("blobs/")) return "";
  rest.remove_prefix(6);
  return is_blob_name(rest) ? std::string(rest) : "";
}

[[noreturn]] void unreadable(const fs::path& path, const std::error_code& error) {
  fail(ErrorKind::io, "cannot read {}: {}", path.string(), error.message());
}

// What cannot be looked at is not absent.
bool is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) unreadable(path, error);
  return fs::exists(status);
}

void walk(const fs::path& folder, const std::string& prefix, int depth, const fs::path& blobs, Snapshot& snapshot) {
  constexpr int kDepthMax = 8;
  constexpr size_t kFilesMax = 100'000;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string path = prefix + name;
    if (!is_repo_path(path) || snapshot.files.size() >= kFilesMax) continue;
    std::error_code refused, ignored;
    const fs::file_status status = it->symlink_status(refused);
    if (fs::is_directory(status)) {
      if (depth < kDepthMax) walk(it->path(), fmt::format("{}/", path), depth + 1, blobs, snapshot);
      continue;
    }
    SnapshotFile file{.path = path, .blob = "", .bytes = 0};
    if (fs::is_symlink(status)) {
      file.blob = blob_of_link(fs::read_symlink(it->path(), refused).string(), depth);
      if (refused) unreadable(it->path(), refused);
      if (file.blob.empty()) continue;
      const auto size = fs::file_size(blobs / file.blob, ignored);
      if (ignored && snapshot.problem.empty())
        snapshot.problem = ignored == std::errc::no_such_file_or_directory
                               ? fmt::format("the blob of {} is absent", path)
                               : fmt::format("the blob of {} cannot be read: {}", path, ignored.message());
      if (!ignored) file.bytes = static_cast<int64_t>(size);
    } else if (fs::is_regular_file(status)) {
      file.bytes = static_cast<int64_t>(fs::file_size(it->path(), refused));
      if (refused) unreadable(it->path(), refused);
    } else if (refused) {
      unreadable(it->path(), refused);
    } else {
      continue;
    }
    snapshot.files.push_back(std::move(file));
  }
  if (error) unreadable(folder, error);
}

// The first file that the snapshot's own index names and the snapshot lacks.
std::string missing_shard(const Snapshot& snapshot) {
  std::set<std::string, std::less<>> present;
  for (const SnapshotFile& file : snapshot.files) present.insert(file.path);
  if (!present.contains("model.safetensors.index.json")) return "";
  try {
    const std::string text = io::real_fs().read_file(snapshot.folder / "model.safetensors.index.json", kIndexBytesMax);
    const json::Value index = json::parse(text, "model.safetensors.index.json");
    const json::Value* map = index.get("weight_map");
    if (!map || !map->object()) return "model.safetensors.index.json has no weight_map";
    for (const auto& [tensor, shard] : *map->object())
      if (shard.string() && !present.contains(*shard.string())) return fmt::format("{} is absent", *shard.string());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// "name-00002-of-00003.gguf" -> 2; 0 for other names.
int split_part(const std::string& path) {
  const size_t tail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= tail) return 0;
  const std::string end = path.substr(path.size() - tail);
  const auto digits = [&](size_t at) { return end.find_first_not_of("0123456789", at) >= at + 5; };
  if (end[0] != '-' || end.substr(6, 4) != "-of-" || !digits(1) || !digits(10)) return 0;
  return std::stoi(end.substr(1, 5));
}

}  // namespace

std::string_view name_of(ModelFormat format) { return format == ModelFormat::gguf ? "gguf" : "safetensors"; }

bool is_repo_name(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == name.npos) return is_name_part(name);
  return is_name_part(name.substr(0, slash)) && is_name_part(name.substr(slash + 1));
}

std::string repo_folder(std::string_view repo) {
  std::string folder(kPrefix);
  for (const char c : repo)
    if (c == '/') folder += "--";
    else folder += c;
  return folder;
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repo(folder.substr(kPrefix.size()));
  if (const size_t at = repo.find("--"); at != repo.npos)
    repo = fmt::format("{}/{}", repo.substr(0, at), repo.substr(at + 2));
  return is_repo_name(repo) ? std::optional(repo) : std::nullopt;
}

bool is_repo_path(std::string_view path) {
  if (path.empty() || path.size() > 4096) return false;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    for (const char c : part)
      if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7F) return false;
    if (end == path.size()) return true;
    path.remove_prefix(end + 1);
  }
}

std::vector<std::string> Snapshot::ggufs() const {
  std::vector<std::string> names;
  for (const SnapshotFile& file : files) {
    const std::string name = fs::path(file.path).filename().string();
    if (file.path.ends_with(".gguf") && !name.starts_with("mmproj") && split_part(file.path) <= 1)
      names.push_back(file.path);
  }
  return names;
}

std::vector<Snapshot> read_snapshots(const fs::path& cache, const std::string& repo) {
  const fs::path root = cache / repo_folder(repo);
  std::vector<Snapshot> snapshots;
  std::error_code error;
  if (!is_there(root / "snapshots")) return snapshots;
  for (fs::directory_iterator it(root / "snapshots", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string revision = it->path().filename().string();
    if (revision.starts_with('.') || !fs::is_directory(it->symlink_status(ignored))) continue;
    Snapshot snapshot{
        .repo = repo, .revision = revision, .folder = it->path(), .files = {}, .bytes = 0, .format = {}, .problem = ""};
    walk(it->path(), "", 0, root / "blobs", snapshot);
    std::sort(snapshot.files.begin(), snapshot.files.end(),
              [](const SnapshotFile& a, const SnapshotFile& b) { return a.path < b.path; });
    bool config = false, tensors = false;
    for (const SnapshotFile& file : snapshot.files) {
      snapshot.bytes += file.bytes;
      config |= file.path == "config.json";
      tensors |= file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos;
    }
    if (config && tensors) {
      snapshot.format = ModelFormat::safetensors;
      if (snapshot.problem.empty()) snapshot.problem = missing_shard(snapshot);
    } else if (!snapshot.ggufs().empty()) {
      snapshot.format = ModelFormat::gguf;
    }
    snapshots.push_back(std::move(snapshot));
  }
  if (error) unreadable(root / "snapshots", error);
  std::sort(snapshots.begin(), snapshots.end(),
            [](const Snapshot& a, const Snapshot& b) { return a.revision < b.revision; });
  return snapshots;
}

std::optional<std::string> read_ref(const fs::path& cache, const std::string& repo, const std::string& ref) {
  if (!is_repo_path(ref)) return std::nullopt;
  const fs::path path = cache / repo_folder(repo) / "refs" / ref;
  if (!is_there(path)) return std::nullopt;
  std::ifstream file(path);
  if (!file) unreadable(path, std::error_code(errno, std::generic_category()));
  std::string revision(256, '\0');
  file.read(revision.data(), static_cast<std::streamsize>(revision.size()));
  revision.resize(static_cast<size_t>(file.gcount()));
  while (revision.ends_with('\n') || revision.ends_with('\r') || revision.ends_with(' ')) revision.pop_back();
  if (!is_repo_path(revision) || revision.find('/') != revision.npos) return std::nullopt;
  return revision;
}

const Snapshot* canonical(const fs::path& cache, const std::vector<Snapshot>& snapshots) {
  if (snapshots.empty()) return nullptr;
  if (const auto main = read_ref(cache, snapshots[0].repo, "main"))
    for (const Snapshot& snapshot : snapshots)
      if (snapshot.revision == *main) return &snapshot;
  const Snapshot* newest = nullptr;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (const Snapshot& snapshot : snapshots) {
    std::error_code ignored;
    const fs::file_time_type time = fs::last_write_time(snapshot.folder, ignored);
    if (!newest || time >= newest_time) {
      newest = &snapshot;
      newest_time = time;
    }
  }
  return newest;
}

std::vector<std::string> list_repos(const fs::path& cache) {
  std::vector<std::string> repos;
  std::error_code error;
  if (!is_there(cache)) return repos;
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error))
    if (auto repo = repo_of_folder(it->path().filename().string())) repos.push_back(std::move(*repo));
  if (error) fail(ErrorKind::io, "cannot read the model store {}: {}", cache.string(), error.message());
  std::sort(repos.begin(), repos.end());
  return repos;
}

}  // namespace hearth::hub
