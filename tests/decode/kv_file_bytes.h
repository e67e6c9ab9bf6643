// A stored prefix in memory, and reading one whole: for the test and the fuzz target.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/random.h"
#include "decode/kv_file.h"

namespace hearth::test {

inline std::vector<graph::KvGroup> kv_groups(graph::KvFormat format, int64_t window) {
  return {{.layers = {0, 2}, .Hkv = 1, .Dh = 64, .window = 0, .format = format},
          {.layers = {1}, .Hkv = 2, .Dh = 64, .window = window, .format = format}};
}

// Random pages of two groups, the second with a window.
struct KvFileBytes {
  KvFileBytes(graph::KvFormat format, int64_t window, int64_t positions) : groups(kv_groups(format, window)) {
    Random random(static_cast<uint64_t>(positions));
    head = {.fingerprint = "f", .space = "s", .created = 1700000000, .ids = {}, .page_checksums = {}};
    for (int64_t i = 0; i < positions; ++i) head.ids.push_back(static_cast<int32_t>(random.below(1000)));
    std::string tail;
    for (const graph::KvGroup& group : groups)
      for (int64_t i = decode::first_page_seen(group, positions); i < decode::pages_of(positions); ++i) {
        std::vector<std::byte>& page = pages.emplace_back(static_cast<size_t>(graph::kv_page_bytes(group)));
        for (std::byte& byte : page) byte = static_cast<std::byte>(random.below(256));
        head.page_checksums.push_back(checksum(page));
        std::string padded(reinterpret_cast<const char*>(page.data()), page.size());
        padded.resize(static_cast<size_t>(decode::kv_file_page_bytes(group)), '\0');
        tail += padded;
      }
    bytes = decode::kv_file_head(head, groups) + tail;
  }

  std::vector<graph::KvGroup> groups;
  decode::KvFileHead head;
  std::vector<std::vector<std::byte>> pages;
  std::string bytes;
};

// `bytes` must outlive the reader.
inline decode::KvFileReader kv_reader(const std::string& bytes, const std::vector<graph::KvGroup>& groups) {
  return {[&bytes](uint64_t at, std::span<std::byte> to) {
            if (at > bytes.size() || to.size() > bytes.size() - at) return false;
            if (!to.empty()) std::memcpy(to.data(), bytes.data() + at, to.size());
            return true;
          },
          bytes.size(), groups, "k"};
}

// Ids, fingerprint, space and every page.
inline std::vector<std::byte> read_kv_file(const std::string& bytes, const std::vector<graph::KvGroup>& groups) {
  const decode::KvFileReader reader = kv_reader(bytes, groups);
  std::vector<std::byte> all;
  const auto add = [&](std::span<const std::byte> more) { all.insert(all.end(), more.begin(), more.end()); };
  add(std::as_bytes(std::span(reader.head().ids)));
  if (reader.head().fingerprint == "f" && reader.head().space == "s") all.push_back(std::byte{1});
  else fail(ErrorKind::corrupt_file, "another model or space");
  for (size_t g = 0; g < groups.size(); ++g)
    for (int64_t i = decode::first_page_seen(groups[g], reader.positions()); i < decode::pages_of(reader.positions());
         ++i) {
      std::vector<std::byte> page(static_cast<size_t>(graph::kv_page_bytes(groups[g])));
      reader.read_page(g, i, page);
      add(page);
    }
  return all;
}

}  // namespace hearth::test
