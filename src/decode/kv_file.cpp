#include "decode/kv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"

namespace hearth::decode {
namespace {

constexpr char kMagic[4] = {'H', 'K', 'V', '1'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kAlign = 4096, kPrologue = 12;
constexpr uint64_t kJsonBytesMax = 64u << 20;

uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

int bits_of(graph::KvFormat format) {
  switch (format) {
    case graph::KvFormat::f32: return 32;
    case graph::KvFormat::bf16: return 16;
    case graph::KvFormat::q8: return 8;
    case graph::KvFormat::q4: return 4;
  }
  return 0;
}

json::Value layers_of(std::span<const graph::KvGroup> groups) {
  json::Array layers;
  for (const graph::KvGroup& group : groups)
    for (size_t i = 0; i < group.layers.size(); ++i) {
      json::Object layer;
      layer["kind"] = group.window > 0 ? "window" : "full";
      layer["bits"] = bits_of(group.format);
      layer["G"] = bits_of(group.format) < 16 ? graph::kKvGroup : int64_t{0};
      layer["Hkv"] = group.Hkv;
      layer["Dh"] = group.Dh;
      layer["window"] = group.window;
      layers.push_back(std::move(layer));
    }
  return layers;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

void append(std::string& to, const void* data, size_t n) { to.append(static_cast<const char*>(data), n); }

}  // namespace

int64_t kv_file_pages(std::span<const graph::KvGroup> groups, int64_t positions) {
  int64_t pages = 0;
  for (const graph::KvGroup& group : groups) pages += pages_of(positions) - first_page_seen(group, positions);
  return pages;
}

int64_t kv_file_page_bytes(const graph::KvGroup& group) {
  return static_cast<int64_t>(aligned(static_cast<uint64_t>(graph::kv_page_bytes(group))));
}

std::string kv_layout(std::span<const graph::KvGroup> groups) { return json::dump(layers_of(groups)); }

std::string kv_file_head(const KvFileHead& head, std::span<const graph::KvGroup> groups) {
  json::Object object;
  object["fingerprint"] = head.fingerprint;
  object["space"] = head.space;
  object["P"] = graph::kPagePositions;
  object["layers"] = layers_of(groups);
  object["positions"] = static_cast<int64_t>(head.ids.size());
  object["created"] = head.created;
  object["ids_checksum"] = hex(checksum(bytes_of(head.ids)));
  json::Array sums;
  for (const uint64_t sum : head.page_checksums) sums.push_back(hex(sum));
  object["page_checksums"] = std::move(sums);
  const std::string text = json::dump(object);
  std::string out(kMagic, sizeof kMagic);
  const auto size = static_cast<uint32_t>(text.size());
  append(out, &kVersion, 4);
  append(out, &size, 4);
  out += text;
  append(out, head.ids.data(), 4 * head.ids.size());
  out.resize(aligned(out.size()), '\0');
  return out;
}

KvFileReader::KvFileReader(Source source, uint64_t file_bytes, std::span<const graph::KvGroup> groups, std::string what)
    : source_(std::move(source)),
      file_bytes_(file_bytes),
      groups_(groups.begin(), groups.end()),
      what_(std::move(what)) {
  std::byte prologue[kPrologue];
  if (file_bytes_ < kPrologue || !source_(0, prologue)) corrupt("it is cut");
  uint32_t version, size;
  if (std::memcmp(prologue, kMagic, sizeof kMagic) != 0) corrupt("it does not begin with HKV1");
  std::memcpy(&version, prologue + 4, 4);
  std::memcpy(&size, prologue + 8, 4);
  if (version != kVersion) corrupt(fmt::format("version {}, this build reads {}", version, kVersion));
  if (size > kJsonBytesMax || size > file_bytes_ - kPrologue) corrupt("its header is longer than the file");
  std::string text(size, '\0');
  if (!source_(kPrologue, std::as_writable_bytes(std::span(text)))) corrupt("it is cut");
  parse(text);
}

void KvFileReader::corrupt(std::string_view why) const { fail(ErrorKind::corrupt_file, "{}: {}", what_, why); }

void KvFileReader::parse(const std::string& text) {
  const json::Value document = json::parse(text, what_, {.depth = 8, .bytes_max = kJsonBytesMax});
  const auto member = [&](std::string_view key) -> const json::Value& {
    const json::Value* value = document.get(key);
    if (!value) corrupt(fmt::format("its header has no {}", key));
    return *value;
  };
  const auto sum_of = [&](const json::Value& value) {
    const std::string& digits = value.as_string(what_);
    uint64_t sum = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sum, 16);
    if (digits.size() != 16 || error != std::errc() || end != digits.data() + 16) corrupt("a checksum is no number");
    return sum;
  };
  head_.fingerprint = member("fingerprint").as_string(what_);
  head_.space = member("space").as_string(what_);
  head_.created = member("created").as_int(what_);
  if (member("P").as_int(what_) != graph::kPagePositions) corrupt("its pages have another number of positions");
  if (member("layers") != layers_of(groups_)) corrupt("its layers are others");
  const int64_t positions = member("positions").as_int(what_);
  if (positions < 1 || positions > kKvFilePositionsMax) corrupt(fmt::format("it has {} positions", positions));
  const uint64_t ids_at = kPrologue + text.size(), ids_bytes = 4 * static_cast<uint64_t>(positions);
  pages_at_ = aligned(ids_at + ids_bytes);
  uint64_t end = pages_at_;
  for (const graph::KvGroup& group : groups_)
    end += static_cast<uint64_t>((pages_of(positions) - first_page_seen(group, positions)) * kv_file_page_bytes(group));
  if (end != file_bytes_) corrupt(fmt::format("it has {} bytes, {} are due", file_bytes_, end));
  const json::Array& sums = member("page_checksums").as_array(what_);
  if (std::cmp_not_equal(sums.size(), kv_file_pages(groups_, positions))) corrupt("it has not a checksum a page");
  for (const json::Value& sum : sums) head_.page_checksums.push_back(sum_of(sum));
  head_.ids.resize(static_cast<size_t>(positions));
  if (!source_(ids_at, std::as_writable_bytes(std::span(head_.ids)))) corrupt("it is cut");
  if (checksum(bytes_of(head_.ids)) != sum_of(member("ids_checksum"))) corrupt("its ids are damaged");
}

void KvFileReader::read_page(size_t group, int64_t index, std::span<std::byte> to) const {
  int64_t number = 0;
  uint64_t at = pages_at_;
  for (size_t g = 0; g < group; ++g) {
    const int64_t pages = pages_of(positions()) - first_page_seen(groups_[g], positions());
    number += pages;
    at += static_cast<uint64_t>(pages * kv_file_page_bytes(groups_[g]));
  }
  const int64_t first = first_page_seen(groups_[group], positions());
  HEARTH_CHECK(index >= first && index < pages_of(positions()), "page {} of {} to {}", index, first,
               pages_of(positions()));
  number += index - first;
  at += static_cast<uint64_t>((index - first) * kv_file_page_bytes(groups_[group]));
  if (!source_(at, to)) corrupt("it is cut");
  if (checksum(to) != head_.page_checksums[static_cast<size_t>(number)])
    corrupt(fmt::format("page {} of group {} is damaged", index, group));
}

}  // namespace hearth::decode
