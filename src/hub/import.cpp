#include "hub/import.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mmap.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "hub/publish.h"

namespace hearth::hub {
namespace fs = std::filesystem;
namespace {

struct SourceFile {
  fs::path path;
  std::string name;  // in the snapshot
  int64_t bytes = 0;
};

struct Source {
  ModelFormat format;
  std::vector<SourceFile> files;  // by name
};

int64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) fail(ErrorKind::io, "cannot read {}: {}", path.string(), error.message());
  return static_cast<int64_t>(size);
}

bool is_left_out(const std::string& name) {
  return name.starts_with('.') || name.ends_with(".incomplete") || name.ends_with(".lock") || name.ends_with(".tmp");
}

void stop_if(const std::atomic<bool>* cancel) {
  if (cancel && cancel->load(std::memory_order_relaxed))
    fail(ErrorKind::cancelled, "the import was cancelled; nothing of it is kept");
}

// The files of a model's folder. Whoever names another one, a home or a disk, hears that before much of it is read, and
// not of the first thing in it that could not be taken.
class Walk {
 public:
  Walk(const fs::path& source, const std::atomic<bool>* cancel) : source_(source), cancel_(cancel) {
    collect(source_, "", 0);
  }

  const std::vector<SourceFile>& files() const { return files_; }  // also those that cannot be taken
  void check() const {
    if (wrong_) throw Error(*wrong_);
  }

 private:
  void collect(const fs::path& folder, const std::string& prefix, int depth) {
    constexpr int kDepthMax = 8, kEntriesMax = 10'000;
    if (depth > kDepthMax)
      fail(ErrorKind::invalid_argument, "{} is no model's folder: it is nested deeper than {} folders, at {}",
           source_.string(), kDepthMax, folder.string());
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      stop_if(cancel_);
      if (++entries_ > kEntriesMax)
        fail(ErrorKind::invalid_argument, "{} is no model's folder: it holds more than {} files and folders",
             source_.string(), kEntriesMax);
      const std::string name = it->path().filename().string();
      if (is_left_out(name)) continue;
      std::error_code broken;
      const fs::file_status status = fs::status(it->path(), broken);
      const bool is_link = fs::is_symlink(it->symlink_status(broken)), is_file = fs::is_regular_file(status);
      if (fs::is_directory(status)) {
        if (!is_link) collect(it->path(), prefix + name + "/", depth + 1);
        continue;
      }
      if (!is_file && !is_link) continue;
      if (!is_repo_path(prefix + name))
        remember(ErrorKind::invalid_argument,
                 fmt::format("{} holds a file whose name cannot stand in the store", folder.string()));
      if (!is_file) remember(ErrorKind::not_found, fmt::format("{} is a link to no file", it->path().string()));
      const auto bytes = is_file ? fs::file_size(it->path(), broken) : 0;
      if (is_file && broken)
        remember(ErrorKind::io, fmt::format("cannot read {}: {}", it->path().string(), broken.message()));
      files_.push_back({it->path(), prefix + name, static_cast<int64_t>(bytes)});
    }
    if (error) remember(ErrorKind::io, fmt::format("cannot read {}: {}", folder.string(), error.message()));
  }

  void remember(ErrorKind kind, const std::string& sentence) {
    if (!wrong_) wrong_.emplace(kind, sentence);
  }

  const fs::path& source_;
  const std::atomic<bool>* cancel_;
  std::vector<SourceFile> files_;
  std::optional<Error> wrong_;  // the first
  int entries_ = 0;
};

json::Value parse_file(const fs::path& path) {
  constexpr size_t kBytesMax = size_t{64} << 20;
  return json::parse(io::real_fs().read_file(path, kBytesMax), path.string());
}

Source read_gguf(const fs::path& path) {
  Source source{ModelFormat::gguf, {}};
  const formats::GgufFile file = formats::GgufFile::open(path);
  for (const MappedFile& part : file.files()) {
    // Known by its content; in the store a model is known by its name.
    std::string name = part.path().filename().string();
    constexpr std::string_view kEnd = ".gguf";
    if (!name.ends_with(kEnd)) name = fmt::format("{}{}", utf8_cut(name, NAME_MAX - kEnd.size()), kEnd);
    if (!is_repo_path(name))
      fail(ErrorKind::invalid_argument, "{}: its name cannot stand in the store", part.path().string());
    source.files.push_back({part.path(), name, size_of(part.path())});
  }
  return source;
}

Source read_folder(const fs::path& folder, const std::atomic<bool>* cancel) {
  const Walk walk(folder, cancel);
  Source source{ModelFormat::safetensors, walk.files()};
  std::set<std::string, std::less<>> names;
  bool tensors = false, ggufs = false;
  for (const SourceFile& file : source.files) {
    names.insert(file.name);
    tensors |= file.name.ends_with(".safetensors");
    ggufs |= file.name.ends_with(".gguf");
  }
  if (names.contains("config.json") || tensors || ggufs || names.empty()) walk.check();
  if (names.contains("config.json") && tensors) {
    const fs::path config = folder / "config.json";
    if (!parse_file(config).object()) fail(ErrorKind::corrupt_file, "{}: no JSON object", config.string());
    if (names.contains("model.safetensors.index.json")) {
      const fs::path path = folder / "model.safetensors.index.json";
      const json::Value index = parse_file(path);
      const json::Value* map = index.get("weight_map");
      if (!map) fail(ErrorKind::corrupt_file, "{}: weight_map is absent", path.string());
      for (const auto& [tensor, shard] : map->as_object("weight_map"))
        if (!names.contains(shard.as_string("weight_map")))
          fail(ErrorKind::corrupt_file, "{} names {}, which {} lacks", path.string(), shard.as_string("weight_map"),
               folder.string());
    }
  } else if (ggufs) {
    source.format = ModelFormat::gguf;
    for (const SourceFile& file : source.files)
      if (file.name.ends_with(".gguf") && file.name.find("-of-") == std::string::npos) {
        stop_if(cancel);
        formats::GgufFile::open(file.path);
      }
  } else {
    fail(ErrorKind::invalid_argument, "{} holds no model: neither config.json with *.safetensors nor a .gguf file",
         folder.string());
  }
  return source;
}

Source read_source(const fs::path& path, const std::atomic<bool>* cancel) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    fail(ErrorKind::not_found, "{}: {}", path.string(), error ? error.message() : "no such file or folder");
  if (!fs::is_directory(status) && !fs::is_regular_file(status))
    fail(ErrorKind::invalid_argument, "{} is neither a file nor a folder", path.string());
  if (!fs::is_directory(status) && path.extension() == ".safetensors")
    fail(ErrorKind::invalid_argument, "{} is one file of a model: import its folder", path.string());
  Source source = fs::is_directory(status) ? read_folder(path, cancel) : read_gguf(path);
  std::sort(source.files.begin(), source.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  return source;
}

// What git-lfs tracks by the hub's default attributes, by size or by kind.
bool is_large(const SourceFile& file) {
  if (file.bytes >= 10'000'000) return true;
  const std::string extension = fs::path(file.name).extension().string();
  return std::set<std::string>{".gguf", ".safetensors", ".bin", ".model", ".msgpack", ".onnx"}.contains(extension);
}

void check_room(const fs::path& cache, const std::string& folder, const Source& source) {
  int64_t needed = 0;
  for (const SourceFile& file : source.files) needed += file.bytes;
  std::error_code ignored;
  if (fs::exists(cache / folder / "blobs", ignored)) return;  // some may be there already: the writes themselves tell
  const int64_t free = bytes_free(cache);
  if (needed > free)
    fail(ErrorKind::io, "no room for the model: it needs {} bytes, {} has {} free; HF_HUB_CACHE chooses another store",
         needed, cache.string(), free);
}

}  // namespace

std::string default_repo(const fs::path& source) {
  fs::path absolute = fs::absolute(source).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  std::string stem = absolute.filename().string();
  if (stem.ends_with(".gguf")) stem.resize(stem.size() - 5);
  if (const size_t part = stem.find("-00001-of-"); part != stem.npos) stem.resize(part);
  std::string name;
  for (const char c : stem) {
    const bool plain = ascii::is_alnum(c) || c == '.' || c == '_';
    const char next = plain ? c : '-';
    if ((next == '-' || next == '.') && (name.empty() || name.back() == '-' || name.back() == '.')) continue;
    name += next;
  }
  name.resize(std::min<size_t>(name.size(), 90));
  while (name.ends_with('-') || name.ends_with('.')) name.pop_back();
  return "local/" + (name.empty() ? "model" : name);
}

ImportResult import_model(const fs::path& cache, const fs::path& path, const ImportOptions& options) {
  const std::string repo = options.repo.empty() ? default_repo(path) : options.repo;
  if (!is_repo_name(repo) || repo.find('/') == repo.npos)
    fail(ErrorKind::invalid_argument,
         "'{}' is no name for a model: ORG/NAME of letters, digits, '.', '_' and single '-'", repo);
  const Source source = read_source(path, options.cancel);
  const std::string folder = repo_folder(repo);

  ImportResult result{.repo = repo, .revision = "", .folder = {}, .format = source.format};
  int64_t total = 0, done = 0;
  for (const SourceFile& file : source.files) total += file.bytes;
  if (!options.hard_link) check_room(cache, folder, source);

  const RepoLock lock = RepoLock::take(cache, folder);
  stale_files(cache, Stale::remove);
  remove_temporaries(cache / folder, false);
  Publisher publisher(cache, folder);
  std::vector<Publisher::Link> links;
  Digest manifest(Digest::Kind::sha1);
  for (const SourceFile& file : source.files) {
    const Publisher::Blob blob = publisher.add_blob(
        {.path = file.path, .sha256 = is_large(file), .hard_link = options.hard_link}, options.cancel, [&](int64_t n) {
          done += n;
          if (options.progress) options.progress(done, total);
        });
    links.push_back({file.name, blob.name});
    manifest.add(fmt::format("{} {} {}\n", blob.name, blob.bytes, file.name));
    result.files += 1;
    result.bytes += blob.bytes;
    if (blob.copied) result.bytes_copied += blob.bytes;
  }
  result.revision = manifest.hex();
  publisher.add_snapshot(result.revision, links);
  publisher.set_ref("main", result.revision);
  publisher.commit();
  result.folder = cache / folder / "snapshots" / result.revision;
  return result;
}

int64_t stale_files(const fs::path& cache, Stale what) {
  int64_t count = 0;
  for (const std::string& repo : list_repos(cache)) {
    const std::string folder = repo_folder(repo);
    if (remove_temporaries(cache / folder, true) == 0) continue;
    const RepoLock lock = RepoLock::try_existing(cache, folder);
    if (lock.held()) count += remove_temporaries(cache / folder, what == Stale::count);
  }
  return count;
}

}  // namespace hearth::hub
