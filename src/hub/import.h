// Brings a local .gguf file or model folder into the store, as one snapshot.
//
// Crash safety: bytes go to hidden temporary files (".hearth-*.tmp") in the repository's own folders, are synced, and
// take their final names by rename: blobs first, then the folder of links, then refs/main. Killed at any point a reader
// sees the old state or the new one; the next import removes the temporary files of dead processes (a lock that the
// kernel releases tells them from living ones).
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "hub/repo.h"

namespace hearth::hub {

struct ImportOptions {
  std::string repo = {};                      // "org/name"; empty: "local/<name of the file or folder>"
  bool hard_link = false;                     // share the source's bytes instead of copying them
  const std::atomic<bool>* cancel = nullptr;  // looked at between files and chunks
  std::function<void(int64_t done, int64_t total)> progress = {};  // bytes; called about every 4 MiB
};

struct ImportResult {
  std::string repo, revision;
  std::filesystem::path folder;  // the snapshot
  ModelFormat format = ModelFormat::gguf;
  int64_t files = 0, bytes = 0;
  int64_t bytes_copied = 0;  // 0 when all was there, or shares its bytes with the source (reflink, hard link)
};

// The source's headers are read first. Blobs are named as the hub names them: SHA-256 for large and binary files
// (.gguf, .safetensors, .bin, .model, .msgpack, .onnx, or 10 MB and more), the git blob SHA-1 for others. The revision
// is the SHA-1 of the list "<blob> <bytes> <path>\n" in path order, so importing the same files again changes nothing.
//   source  a .gguf file (its further parts come along), or a folder with config.json and *.safetensors, or with .gguf
//           files; hidden files, *.incomplete, *.lock and *.tmp of a folder stay out. At most 10,000 files and folders,
//           nested at most 8 deep.
// Throws Error{not_found} for a missing source, {invalid_argument} for one that is no model or a bad name,
// {corrupt_file} for a damaged one, {busy} while another process imports the same name, {io} for a store that cannot be
// written or has no room (with both sizes), {cancelled}. Whatever it throws, what it had begun is removed.
ImportResult import_model(const std::filesystem::path& cache, const std::filesystem::path& source,
                          const ImportOptions& options);

// "org/name" for a source without a given name: its file name without ".gguf", other characters as '-'.
std::string default_repo(const std::filesystem::path& source);

// Temporary files in `cache` whose writers are dead: counted, or removed too.
enum class Stale { count, remove };
int64_t stale_files(const std::filesystem::path& cache, Stale what);

}  // namespace hearth::hub
