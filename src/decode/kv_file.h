// A prefix on disk (spec server 3.4). Little-endian:
//   0       "HKV1", u32 version, u32 bytes of the JSON
//   12      JSON {fingerprint, space, P, layers: [{kind, bits, G, Hkv, Dh, window}], positions, created, ids_checksum,
//           page_checksums}: checksums (base/checksum.h) as 16 hexadecimal digits; layers in the order of the groups
//   then    u32 ids, one a position
//   then    the pages, group after group, each from a multiple of 4096 on; of a window group those alone that the
//           position behind the last one sees
// Every byte but the padding stands under a checksum or is compared with what is known.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/kv_cache.h"
#include "graph/kv.h"

namespace hearth::decode {

inline constexpr int64_t kKvFilePositionsMax = 1 << 24;

struct KvFileHead {
  std::string fingerprint;  // of model, numerics and machine
  std::string space;        // digest of the cache space's name
  int64_t created = 0;      // seconds since 1970
  std::vector<int32_t> ids;
  std::vector<uint64_t> page_checksums;  // in the order of the pages
};

int64_t kv_file_pages(std::span<const graph::KvGroup> groups, int64_t positions);  // that a file holds
int64_t kv_file_page_bytes(const graph::KvGroup& group);                           // with the padding behind it
// Groups as text, for fingerprints and headers: what a page's bytes mean.
std::string kv_layout(std::span<const graph::KvGroup> groups);

// All that stands before the pages.
std::string kv_file_head(const KvFileHead& head, std::span<const graph::KvGroup> groups);

// Reads a file, trusting nothing. One thread.
class KvFileReader {
 public:
  // Fills `to` from that offset on; false when the bytes are not there.
  using Source = std::function<bool(uint64_t at, std::span<std::byte> to)>;

  // Reads the head. Throws Error{corrupt_file} naming `what` unless all of it is as above for these groups, the ids'
  // checksum is right, and the file ends with its last page. Allocates no more than the file has bytes.
  KvFileReader(Source source, uint64_t file_bytes, std::span<const graph::KvGroup> groups, std::string what);

  const KvFileHead& head() const { return head_; }
  int64_t positions() const { return static_cast<int64_t>(head_.ids.size()); }

  // The bytes of page `index` (position / P) of a group, kv_page_bytes(group) of them. Throws Error{corrupt_file} for a
  // wrong checksum or a file that was cut meanwhile.
  void read_page(size_t group, int64_t index, std::span<std::byte> to) const;

 private:
  void parse(const std::string& text);
  [[noreturn]] void corrupt(std::string_view why) const;

  Source source_;
  uint64_t file_bytes_;
  std::vector<graph::KvGroup> groups_;
  std::string what_;
  KvFileHead head_;
  uint64_t pages_at_ = 0;
};

}  // namespace hearth::decode
