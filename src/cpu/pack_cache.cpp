#include "cpu/pack_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/ascii.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mmap.h"
#include "cpu/pack_folder.h"

namespace hearth::cpu {
namespace {

constexpr std::string_view kMagic = "hearthP3";
constexpr size_t kAlign = 64, kDataBegin = 4096, kFootBytes = 64;
constexpr size_t kChunkBytes = size_t{2} << 20;  // a huge page where the file system has those
constexpr size_t kAhead = 32;                    // chunks that are read together, so that all threads have work

struct Foot {
  uint64_t file_bytes, index_bytes, index_sum, own_sum, zeros[3];
  char magic[8];
};
static_assert(sizeof(Foot) == kFootBytes);

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> head_of(const Foot& foot) {
  return std::as_bytes(std::span(&foot, 1)).first(3 * sizeof(uint64_t));
}

void append_hex(std::string& out, uint64_t value) { out += fmt::format("{:016x}", value); }

bool is_key(std::string_view key) {
  const auto plain = [](char c) { return ascii::is_alnum(c) || c == '.' || c == '-' || c == '_'; };
  return !key.empty() && key.size() <= 128 && std::ranges::all_of(key, plain);
}

const json::Value& field(const json::Value& object, std::string_view name, const std::string& what) {
  const json::Value* v = object.get(name);
  if (!v) fail(ErrorKind::corrupt_file, "{}: the index has no {}", what, name);
  return *v;
}

bool read_all(int file, std::span<std::byte> out, size_t offset) noexcept {
  while (!out.empty()) {
    const ssize_t n = ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<size_t>(n);
  }
  return true;
}

// The file's time says when it was last of use.
void touch(const std::filesystem::path& path) noexcept {
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return;  // a folder of others: it ages then
}

}  // namespace

PackCache::PackCache(PackCacheOptions options) : options_(std::move(options)) {
  if (!is_key(options_.key))
    fail(ErrorKind::invalid_argument, "packed weights: '{}' is no key: 1 to 128 of letters, digits, '.', '-', '_'",
         options_.key);
  path_ = options_.dir / (options_.key + std::string(kPackedSuffix));
  try {
    open();
    touch(path_);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::not_found) {
      log::warn("cpu", "packed weights are made anew: {}", e.what());
      mend_ = e.kind() == ErrorKind::corrupt_file;
    }
    matrices_.clear();
    checked_.clear();
  }
}

void PackCache::open() {
  const MappedFile file = MappedFile::open(path_);
  const std::span<const std::byte> bytes = file.bytes();
  const std::string what = path_.string();
  if (bytes.size() < kDataBegin + kFootBytes || text_of(bytes.first(kMagic.size())) != kMagic)
    fail(ErrorKind::corrupt_file, "{}: no packed weights of this version", what);
  Foot foot;
  std::memcpy(&foot, bytes.data() + bytes.size() - kFootBytes, kFootBytes);
  if (std::string_view(foot.magic, sizeof foot.magic) != kMagic || foot.file_bytes != bytes.size() ||
      foot.own_sum != checksum(head_of(foot)))
    fail(ErrorKind::corrupt_file, "{}: its {} bytes do not end as they should: cut, or not all written", what,
         bytes.size());
  if (foot.index_bytes > bytes.size() - kDataBegin - kFootBytes)
    fail(ErrorKind::corrupt_file, "{}: an index of {} bytes in a file of {}", what, foot.index_bytes, bytes.size());
  data_end_ = bytes.size() - kFootBytes - foot.index_bytes;
  const std::span<const std::byte> index = bytes.subspan(data_end_, foot.index_bytes);
  if (checksum(index) != foot.index_sum) fail(ErrorKind::corrupt_file, "{}: the index is damaged", what);
  read_index(index);
  in_.reset(std::fopen(path_.c_str(), "rb"), [](std::FILE* f) {
    if (f) std::fclose(f);
  });
  if (!in_) fail(ErrorKind::not_found, "{}: gone while it was opened", what);
}

void PackCache::read_index(std::span<const std::byte> text) {
  const std::string what = path_.string();
  const json::Value index = json::parse(text_of(text), what);
  if (const std::string& key = field(index, "key", what).as_string(what); key != options_.key)
    fail(ErrorKind::corrupt_file, "{}: it holds the weights of {}", what, key);
  const int64_t chunk = field(index, "chunk_bytes", what).as_int(what);
  if (chunk < static_cast<int64_t>(kAlign) || chunk > (int64_t{1} << 30))
    fail(ErrorKind::corrupt_file, "{}: chunks of {} bytes", what, chunk);
  chunk_bytes_ = static_cast<size_t>(chunk);
  const std::string& sums = field(index, "sums", what).as_string(what);
  const size_t chunks = (data_end_ + chunk_bytes_ - 1) / chunk_bytes_;
  if (sums.size() != 16 * chunks)
    fail(ErrorKind::corrupt_file, "{}: {} digits of sums for {} chunks", what, sums.size(), chunks);
  sums_.resize(chunks);
  for (size_t i = 0; i < chunks; ++i) {
    const char *begin = sums.data() + 16 * i, *end = begin + 16;
    if (const auto [at, error] = std::from_chars(begin, end, sums_[i], 16); error != std::errc() || at != end)
      fail(ErrorKind::corrupt_file, "{}: the sum of chunk {} is no number", what, i);
  }
  chunks_.assign(chunks, State::unread);

  const auto read = [&](const json::Value& m, Entries& into, bool placed) {
    Entry e{.format = field(m, "format", what).as_string(what),
            .N = field(m, "N", what).as_int(what),
            .K = field(m, "K", what).as_int(what),
            .nonfinite = field(m, "nonfinite", what).as_int(what)};
    if (placed) {
      const int64_t offset = field(m, "offset", what).as_int(what), size = field(m, "bytes", what).as_int(what);
      const auto end = static_cast<int64_t>(data_end_);
      if (offset < static_cast<int64_t>(kDataBegin) || size < 0 || offset > end || size > end - offset ||
          offset % static_cast<int64_t>(kAlign) != 0)
        fail(ErrorKind::corrupt_file, "{}: {} bytes at {}, the matrices end at {}", what, size, offset, end);
      e.offset = static_cast<size_t>(offset);
      e.bytes = static_cast<size_t>(size);
    }
    into[field(m, "name", what).as_string(what)] = e;
  };
  for (const json::Value& m : field(index, "matrices", what).as_array(what)) read(m, matrices_, true);
  for (const json::Value& m : field(index, "checked", what).as_array(what)) read(m, checked_, false);
}

// Reads and compares the chunks of these bytes, and unread ones behind them while all threads are at it.
bool PackCache::whole(size_t offset, size_t bytes, Team* team) {
  const size_t first = offset / chunk_bytes_, end = (offset + bytes + chunk_bytes_ - 1) / chunk_bytes_;
  const auto unread = [](State s) { return s == State::unread; };
  const auto begin = chunks_.begin();
  if (std::any_of(begin + static_cast<long>(first), begin + static_cast<long>(end), unread)) {
    if (data_.bytes.empty()) data_ = arena_.take(static_cast<int64_t>(data_end_));
    const size_t last = std::min(chunks_.size(), std::max(end, first + kAhead));
    std::atomic<size_t> next{first};
    const auto read = [&](int) {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < last;) {
        if (chunks_[i] != State::unread) continue;
        const size_t at = i * chunk_bytes_;
        const std::span<std::byte> chunk = data_.bytes.subspan(at, std::min(chunk_bytes_, data_end_ - at));
        chunks_[i] =
            read_all(fileno(in_.get()), chunk, at) && checksum(chunk) == sums_[i] ? State::whole : State::damaged;
      }
    };
    if (team) team->run(read);
    else read(0);
  }
  return std::all_of(begin + static_cast<long>(first), begin + static_cast<long>(end),
                     [](State s) { return s == State::whole; });
}

std::optional<PackCache::Found> PackCache::find(std::string_view name, const PackedTensor& w, Team* team) {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return std::nullopt;
  const Entry& e = at->second;
  if (e.format != name_of(w.format) || e.N != w.N || e.K != w.K) return std::nullopt;
  if (!whole(e.offset, e.bytes, team)) {
    needs_mending(fmt::format("{} is damaged", name));
    return std::nullopt;
  }
  try {
    Matrix matrix = Matrix::view(data_.bytes.subspan(e.offset, e.bytes), data_.owner);
    if (matrix.N() != w.N || matrix.K() != w.K || !(matrix.format() == w.format)) return std::nullopt;
    known_.push_back({std::string(name), matrix, e.nonfinite});
    return Found{std::move(matrix), e.nonfinite};
  } catch (const Error& error) {  // another layout
    needs_mending(error.what());
    return std::nullopt;
  }
}

// Said once: hundreds of matrices may lie in a damaged stretch.
void PackCache::needs_mending(std::string_view why) {
  if (!mend_) log::warn("cpu", "{}: {}: what is not whole is packed anew", path_.string(), why);
  mend_ = true;
}

std::optional<int64_t> PackCache::checked(std::string_view name, const PackedTensor& w) {
  const auto at = checked_.find(name);
  if (at == checked_.end()) return std::nullopt;
  const Entry& e = at->second;
  if (e.format != name_of(w.format) || e.N != w.N || e.K != w.K) return std::nullopt;
  add_checked(name, w, e.nonfinite);
  return e.nonfinite;
}

void PackCache::add(std::string_view name, const Matrix& matrix, int64_t nonfinite) {
  known_.push_back({std::string(name), matrix, nonfinite});
  added_ += static_cast<int64_t>(matrix.bytes().size());
}

void PackCache::add_checked(std::string_view name, const PackedTensor& w, int64_t nonfinite) {
  known_checked_.emplace_back(name, Entry{.format = name_of(w.format), .N = w.N, .K = w.K, .nonfinite = nonfinite});
}

void PackCache::save() noexcept {
  if (added_ < options_.bytes_min && !(mend_ && added_ > 0)) return;
  added_ = 0;
  mend_ = false;
  try {
    write();
  } catch (const std::exception& e) {
    log::warn("cpu", "packed weights are not kept, so the next start packs again: {}", e.what());
  }
}

namespace {

// Bytes on their way to the file, summed chunk by chunk.
class Writer {
 public:
  explicit Writer(io::AtomicFile& file) : file_(file) { chunk_.reserve(kChunkBytes); }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kChunkBytes - chunk_.size());
      chunk_.insert(chunk_.end(), bytes.begin(), bytes.begin() + static_cast<long>(n));
      bytes = bytes.subspan(n);
      if (chunk_.size() == kChunkBytes) flush();
    }
  }
  void flush() {
    if (chunk_.empty()) return;
    append_hex(sums_, checksum(chunk_));
    file_.write(chunk_);
    chunk_.clear();
  }
  const std::string& sums() const { return sums_; }

 private:
  io::AtomicFile& file_;
  std::vector<std::byte> chunk_;
  std::string sums_;
};

}  // namespace

void PackCache::write() {
  size_t data = 0;
  for (const Known& k : known_) data += aligned(k.matrix.bytes().size());
  constexpr size_t kIndexGuess = 1 << 20;
  options_.fs->make_dirs(options_.dir);
  const io::FolderUse use = use_packed(*options_.fs, options_.dir);
  make_room(*options_.fs, path_, static_cast<int64_t>(data + kIndexGuess), options_.bytes_max);

  io::AtomicFile file(*options_.fs, path_);
  std::string head(kMagic);
  head.resize(kDataBegin, '\0');
  Writer writer(file);
  writer.write(std::as_bytes(std::span(head)));
  json::Array matrices, checked;
  size_t offset = kDataBegin;
  for (const auto& [name, matrix, nonfinite] : known_) {
    const size_t size = matrix.bytes().size();
    json::Object m;
    m["name"] = name;
    m["format"] = name_of(matrix.format());
    m["N"] = matrix.N();
    m["K"] = matrix.K();
    m["offset"] = static_cast<int64_t>(offset);
    m["bytes"] = static_cast<int64_t>(size);
    m["nonfinite"] = nonfinite;
    matrices.push_back(std::move(m));
    writer.write(matrix.bytes());
    writer.write(std::vector<std::byte>(aligned(size) - size));
    offset += aligned(size);
  }
  writer.flush();
  for (const auto& [name, e] : known_checked_) {
    json::Object m;
    m["name"] = name;
    m["format"] = e.format;
    m["N"] = e.N;
    m["K"] = e.K;
    m["nonfinite"] = e.nonfinite;
    checked.push_back(std::move(m));
  }
  json::Object index;
  index["key"] = options_.key;
  index["source"] = options_.source;
  index["chunk_bytes"] = static_cast<int64_t>(kChunkBytes);
  index["sums"] = writer.sums();
  index["matrices"] = std::move(matrices);
  index["checked"] = std::move(checked);
  const std::string text = json::dump(json::Value(std::move(index)));
  file.write(text);

  const auto index_bytes = std::as_bytes(std::span(text));
  Foot foot{.file_bytes = offset + text.size() + kFootBytes,
            .index_bytes = text.size(),
            .index_sum = checksum(index_bytes),
            .own_sum = 0,
            .zeros = {},
            .magic = {}};
  foot.own_sum = checksum(head_of(foot));
  std::memcpy(foot.magic, kMagic.data(), sizeof foot.magic);
  file.write(std::as_bytes(std::span(&foot, 1)));
  file.commit();
}

}  // namespace hearth::cpu
