// Adapters on disk as the front sees them: folders, and open files that it never reads. What they hold is a worker's to
// judge.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/descriptor.h"

namespace hearth::server {

// Kept open for as long as the adapter is mounted: a worker that is started anew gets the very same files, whatever has
// become of their names.
struct AdapterFiles {
  std::vector<std::string> names;  // config, weights; without a folder
  Descriptors files;

  json::Array names_json() const;
};

// Both files of the folder, or its config alone. Throws Error{not_found} for what is absent, Error{invalid_argument}
// for what is no regular file, Error{io}; no sentence names the folder.
AdapterFiles open_adapter(const std::filesystem::path& folder);
AdapterFiles open_adapter_config(const std::filesystem::path& folder);

// The folder that a request means: an absolute path, or a path inside of `folder`. Throws RequestError("path").
std::filesystem::path adapter_folder(const std::filesystem::path& folder, const std::string& path);

// Names of the folders in `folder` that hold an adapter's files, at most kAdaptersListed; none where there is no such
// folder.
inline constexpr size_t kAdaptersListed = 256;
std::vector<std::string> adapters_in(const std::filesystem::path& folder);

}  // namespace hearth::server
