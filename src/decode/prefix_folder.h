// The folder of the disk tier, which the processes of several models share.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/folder_use.h"
#include "base/fs.h"

namespace hearth::decode {

inline constexpr std::string_view kPrefixSuffix = ".hkv";

// This process as one of those that use a model's folder, root/model/<space>/. Where nobody uses one, temporaries are
// those of killed processes. One thread.
class PrefixFolder {
 public:
  // Removes what killed processes left, in all folders of root that nobody uses. root/model must be there. Throws
  // Error{io}; a file system without locks costs the cleaning alone.
  PrefixFolder(io::Fs& fs, const std::filesystem::path& root, const std::string& model);

 private:
  std::optional<io::FolderUse> use_;
};

// Has the files of all models in root take at most bytes_max together with `bytes` more: those used longest ago go, by
// the time of their last change; removed() is told of each. Throws Error{io}, also where `bytes` alone are too many.
void make_prefix_room(io::Fs& fs, const std::filesystem::path& root, int64_t bytes, int64_t bytes_max,
                      const std::function<void(const std::filesystem::path& path)>& removed);

}  // namespace hearth::decode
