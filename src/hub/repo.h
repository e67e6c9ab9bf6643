// Layout of one repository in the hub cache: names, revisions, snapshots (data-hub-jobs 2.5). Reading only.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::hub {

enum class ModelFormat { gguf, safetensors };
std::string_view name_of(ModelFormat format);

// "org/name" or "name": components of letters, digits, '.', '_', '-' (at most 96 bytes each, no "..", no "--", neither
// '-' nor '.' at an end).
bool is_repo_name(std::string_view name);
std::string repo_folder(std::string_view repo);                      // "org/name" -> "models--org--name"
std::optional<std::string> repo_of_folder(std::string_view folder);  // the inverse; nullopt for other folders

// A file path inside a repository: relative, components neither empty, ".", "..", longer than 255 bytes, nor holding
// NUL, '\\' or control characters; at most 4,096 bytes.
bool is_repo_path(std::string_view path);

struct SnapshotFile {
  std::string path;  // inside the snapshot, with '/'
  std::string blob;  // name of its blob; empty for a regular file (caches without links)
  int64_t bytes = 0;
};

// One revision on disk. `problem` says why it cannot be loaded; empty when it can.
struct Snapshot {
  std::string repo, revision;
  std::filesystem::path folder;
  std::vector<SnapshotFile> files;  // by path; links of any other shape than ours are left out
  int64_t bytes = 0;
  std::optional<ModelFormat> format;  // nullopt: no model in it (a dataset card, a tokenizer alone), or not known
  std::string problem;

  // Model files to choose from, relative paths: every .gguf but vision sidecars (mmproj*), one entry (the first part)
  // for a split file; empty for safetensors.
  std::vector<std::string> ggufs() const;
};

// Snapshots of models--*/snapshots, by revision name. Missing folders are no error, here and below; Error{io} when one
// cannot be read.
std::vector<Snapshot> read_snapshots(const std::filesystem::path& cache, const std::string& repo);

// Target of refs/<ref>; nullopt when absent or not a plain name; Error{io} when it cannot be read.
std::optional<std::string> read_ref(const std::filesystem::path& cache, const std::string& repo,
                                    const std::string& ref);

// The snapshot that the bare name means: refs/main, else the newest folder (ties: the later name). Null when none.
const Snapshot* canonical(const std::filesystem::path& cache, const std::vector<Snapshot>& snapshots);

// All repositories of the cache, by name. A missing cache is empty; Error{io} for one that cannot be read.
std::vector<std::string> list_repos(const std::filesystem::path& cache);

}  // namespace hearth::hub
