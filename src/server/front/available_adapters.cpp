#include "server/front/available_adapters.h"

#include <algorithm>

#include "formats/adapter.h"
#include "server/front/adapter_files.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;

class Deadline {
 public:
  explicit Deadline(milliseconds at_most) : end_(std::chrono::steady_clock::now() + at_most) {}
  milliseconds left() const {
    const auto left = std::chrono::duration_cast<milliseconds>(end_ - std::chrono::steady_clock::now());
    return std::max(left, milliseconds(0));
  }

 private:
  std::chrono::steady_clock::time_point end_;
};

// Opened when its turn comes: one config at a time is on its way.
json::Object describe(HeaderReader& reader, const std::filesystem::path& folder, const std::string& name,
                      const hub::FoundModel& model, const Deadline& deadline) {
  formats::check_adapter_id(name);
  const AdapterFiles config = open_adapter_config(folder / name);
  json::Object body;
  body["name"] = name;
  body["files"] = config.names_json();
  body["repo"] = model.repo;
  body["revision"] = model.revision;
  return reader.describe(std::move(body), config.files, deadline.left());
}

}  // namespace

std::variant<std::vector<AvailableAdapter>, Refusal> available_adapters(
    const std::filesystem::path& folder, const hub::FoundModel& model,
    const std::function<std::unique_ptr<HeaderReader>()>& start, milliseconds at_most) {
  const Deadline deadline(at_most);
  std::vector<AvailableAdapter> list;
  std::unique_ptr<HeaderReader> reader;
  for (const std::string& name : adapters_in(folder)) {
    list.push_back({.name = name, .facts = {}, .problem = {}});
    if (deadline.left() == milliseconds(0)) {
      list.back().problem = "it was not read in time";
      continue;
    }
    if (!reader) {
      reader = start();
      const ModelHeaders headers = reader->headers(deadline.left());
      if (headers.refusal) return *headers.refusal;
    }
    try {
      list.back().facts = describe(*reader, folder, name, model, deadline);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      list.back().problem = refusal_of(error).message;
      if (error.kind() == ErrorKind::device_lost) reader = nullptr;
    }
  }
  return list;
}

}  // namespace hearth::server
