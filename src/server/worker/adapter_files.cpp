#include "server/worker/adapter_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/printable.h"
#include "formats/adapter_config.h"
#include "formats/config.h"

namespace hearth::server {
namespace {

constexpr int64_t kHeaderBytes = 8 << 20;  // of a weight file, beside its values

std::string text_of(const json::Value& body, const char* key) {
  const json::Value* value = body.get(key);
  return value ? value->as_string(key) : std::string();
}

std::string name_of_file(const Frame& frame, size_t i) {
  const json::Array& names = *frame.body.get("files")->array();
  if (i >= names.size()) fail(ErrorKind::corrupt_file, "a frame with {} files of an adapter", names.size());
  return names[i].as_string("files");
}

int64_t size_of(const Descriptor& file, const std::string& name) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail(ErrorKind::io, "{}: {}", name, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::invalid_argument, "{} is no regular file", name);
  return info.st_size;
}

// As long as it was when it was asked for; longer by now is none of our business.
std::string contents(const Descriptor& file, int64_t size, const std::string& name) {
  std::string text(static_cast<size_t>(size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::pread(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::io, "{}: {}", name, std::strerror(errno));
    if (n == 0) fail(ErrorKind::corrupt_file, "{}: it shrank from {} bytes to {} while it was read", name, size, at);
    at += static_cast<size_t>(n);
  }
  return text;
}

std::string config_of(const Frame& frame) {
  const std::string name = name_of_file(frame, 0);
  const int64_t size = size_of(frame.files[0], name);
  if (std::cmp_greater(size, formats::kConfigBytesMax))
    fail(ErrorKind::corrupt_file, "{} has {} bytes, a config has at most {}", name, size, formats::kConfigBytesMax);
  return contents(frame.files[0], size, name);
}

std::string mismatch_of(const Frame& frame, const formats::Adapter& adapter) {
  return formats::base_mismatch(adapter, text_of(frame.body, "repo"), text_of(frame.body, "revision"));
}

json::Object shown(const formats::Adapter& adapter, const std::string& mismatch) {
  json::Object o;
  o["id"] = adapter.id;
  o["base"] = adapter.base.empty() ? json::Value() : json::Value(printable(adapter.base));
  o["revision"] = adapter.revision.empty() ? json::Value() : json::Value(printable(adapter.revision));
  o["compatible"] = mismatch.empty();
  if (!mismatch.empty()) o["mismatch"] = mismatch;
  return o;
}

}  // namespace

ReadAdapter read_adapter(const Frame& frame, std::span<const formats::AdapterLinear> base, int64_t bytes_kept) {
  const std::string id = text_of(frame.body, "name");
  formats::check_adapter_id(id);
  const std::string config = config_of(frame), weights_name = name_of_file(frame, 1);
  const int64_t size = size_of(frame.files[1], weights_name);
  if (bytes_kept == 0)
    fail(ErrorKind::out_of_memory, "adapter {}: no memory is kept for adapters (serve --adapter-memory)",
         printable(id));
  if (size > bytes_kept + kHeaderBytes)
    fail(ErrorKind::out_of_memory, "adapter {}: {} has {:.1f} MB, {:.1f} MB are kept for adapters", printable(id),
         weights_name, static_cast<double>(size) / 1e6, static_cast<double>(bytes_kept) / 1e6);
  const std::string weights = contents(frame.files[1], size, weights_name);
  ReadAdapter read;
  read.adapter = formats::parse_adapter({.config = config,
                                         .weights = std::as_bytes(std::span(weights)),
                                         .config_name = name_of_file(frame, 0),
                                         .weights_name = weights_name},
                                        base);
  read.adapter.id = id;
  Digest digest(Digest::Kind::sha256);
  digest.add(fmt::format("{}\n", config.size()));
  digest.add(config);
  digest.add(weights);
  read.digest = digest.hex();
  if (const std::string before = text_of(frame.body, "digest"); !before.empty() && before != read.digest)
    fail(ErrorKind::corrupt_file, "adapter {}: its files are not what they were when it was mounted", printable(id));
  read.mismatch = mismatch_of(frame, read.adapter);
  const json::Value* force = frame.body.get("force");
  if (!read.mismatch.empty() && !(force && force->as_bool("force")))
    fail(ErrorKind::invalid_argument, "{}; \"force\": true mounts it all the same", read.mismatch);
  return read;
}

json::Object facts_of(const ReadAdapter& read) {
  json::Object o = shown(read.adapter, read.mismatch);
  o["rank"] = read.adapter.rank_max();
  o["digest"] = read.digest;
  return o;
}

json::Object describe_adapter(const Frame& frame) {
  const std::string config = config_of(frame);
  const formats::AdapterConfig parsed = formats::parse_adapter_config(config, name_of_file(frame, 0));
  const formats::Adapter adapter{
      .id = text_of(frame.body, "name"), .base = parsed.base, .revision = parsed.revision, .linears = {}};
  return shown(adapter, mismatch_of(frame, adapter));
}

}  // namespace hearth::server
