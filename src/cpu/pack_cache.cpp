#include "cpu/pack_cache.h"

#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

namespace hearth::cpu {
namespace {

constexpr std::string_view kMagic = "hearthP1";
constexpr size_t kAlign = 64, kHead = kMagic.size() + sizeof(uint64_t);

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

std::string sha256_of(std::span<const std::byte> bytes) {
  Digest digest(Digest::Kind::sha256);
  digest.add(bytes);
  return digest.hex();
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PackCache::PackCache(const std::filesystem::path& dir, std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  if (key.empty() || key.size() > 128 || !std::ranges::all_of(key, plain))
    fail(ErrorKind::invalid_argument, "packed weights: '{}' is no key: 1 to 128 of letters, digits, '.', '-', '_'",
         key);
  path_ = dir / (std::string(key) + ".packed");
  try {
    file_ = std::make_shared<const MappedFile>(MappedFile::open(path_));
    read_index();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::not_found) log::warn("cpu", "packed weights are made anew: {}", e.what());
    entries_.clear();
    file_.reset();
  }
}

void PackCache::read_index() {
  const std::span<const std::byte> bytes = file_->bytes();
  const std::string what = path_.string();
  uint64_t length = 0;
  if (bytes.size() < kHead || text_of(bytes.first(kMagic.size())) != kMagic)
    fail(ErrorKind::corrupt_file, "{}: no file of packed weights", what);
  std::memcpy(&length, bytes.data() + kMagic.size(), sizeof length);
  if (length > bytes.size() - kHead)
    fail(ErrorKind::corrupt_file, "{}: an index of {} bytes in a file of {}", what, length, bytes.size());
  const json::Value index = json::parse(text_of(bytes.subspan(kHead, length)), what);
  const json::Value* matrices = index.get("matrices");
  if (!matrices) fail(ErrorKind::corrupt_file, "{}: the index names no matrices", what);
  const auto field = [&](const json::Value& m, std::string_view name) -> const json::Value& {
    const json::Value* v = m.get(name);
    if (!v) fail(ErrorKind::corrupt_file, "{}: a matrix without {}", what, name);
    return *v;
  };
  for (const json::Value& m : matrices->as_array(what)) {
    Entry e{.format = field(m, "format").as_string(what),
            .sha256 = field(m, "sha256").as_string(what),
            .N = field(m, "N").as_int(what),
            .K = field(m, "K").as_int(what)};
    const int64_t offset = field(m, "offset").as_int(what), size = field(m, "bytes").as_int(what);
    const auto whole = static_cast<int64_t>(bytes.size());
    if (offset < 0 || size < 0 || offset > whole || size > whole - offset || offset % static_cast<int64_t>(kAlign) != 0)
      fail(ErrorKind::corrupt_file, "{}: {} bytes at {} of a file of {}", what, size, offset, whole);
    e.offset = static_cast<size_t>(offset);
    e.bytes = static_cast<size_t>(size);
    entries_[field(m, "name").as_string(what)] = e;
  }
}

std::optional<Matrix> PackCache::find(std::string_view name, const PackedTensor& w) const {
  const auto at = entries_.find(name);
  if (at == entries_.end()) return std::nullopt;
  const Entry& e = at->second;
  if (e.format != name_of(w.format) || e.N != w.N || e.K != w.K) return std::nullopt;
  const std::span<const std::byte> bytes = file_->bytes().subspan(e.offset, e.bytes);
  if (sha256_of(bytes) != e.sha256) {
    log::warn("cpu", "{}: {} does not match its digest and is packed anew", path_.string(), name);
    return std::nullopt;
  }
  try {
    Matrix matrix = Matrix::view(bytes, file_);
    if (matrix.N() != w.N || matrix.K() != w.K || !(matrix.format() == w.format)) return std::nullopt;
    known_.emplace_back(name, matrix);
    return matrix;
  } catch (const Error& error) {  // another layout
    log::warn("cpu", "{}: {} is packed anew: {}", path_.string(), name, error.what());
    return std::nullopt;
  }
}

void PackCache::add(std::string_view name, const Matrix& matrix, double seconds) {
  known_.emplace_back(name, matrix);
  seconds_ += seconds;
}

void PackCache::save() noexcept {
  if (seconds_ <= seconds_min) return;
  seconds_ = 0;
  try {
    // Offsets depend on the index's length: they are written with room to spare.
    json::Array matrices;
    size_t index_room = 64;
    for (const auto& [name, matrix] : known_) index_room += 6 * name.size() + 256;
    const size_t start = aligned(kHead + index_room);
    size_t offset = start;
    for (const auto& [name, matrix] : known_) {
      json::Object m;
      m["name"] = name;
      m["format"] = name_of(matrix.format());
      m["N"] = matrix.N();
      m["K"] = matrix.K();
      m["offset"] = static_cast<int64_t>(offset);
      m["bytes"] = static_cast<int64_t>(matrix.bytes().size());
      m["sha256"] = sha256_of(matrix.bytes());
      matrices.push_back(std::move(m));
      offset += aligned(matrix.bytes().size());
    }
    json::Object index;
    index["matrices"] = std::move(matrices);
    const std::string text = json::dump(json::Value(std::move(index)));
    HEARTH_CHECK(kHead + text.size() <= start, "{} bytes of index", text.size());

    io::Fs& fs = io::real_fs();
    fs.make_dirs(path_.parent_path());
    io::AtomicFile file(fs, path_);
    const uint64_t length = text.size();
    std::string head(kMagic);
    head.append(reinterpret_cast<const char*>(&length), sizeof length);
    head += text;
    head.resize(start, '\0');
    file.write(head);
    for (const auto& [name, matrix] : known_) {
      file.write(matrix.bytes());
      file.write(std::string(aligned(matrix.bytes().size()) - matrix.bytes().size(), '\0'));
    }
    file.commit();
  } catch (const std::exception& e) {
    log::warn("cpu", "packed weights are not kept: {}", e.what());
  }
}

}  // namespace hearth::cpu
