#include "server/front/refusal.h"

namespace hearth::server {
namespace {

ErrorKind kind_of(const std::string& name) {
  for (const ErrorKind kind :
       {ErrorKind::invalid_argument, ErrorKind::not_found, ErrorKind::busy, ErrorKind::out_of_memory,
        ErrorKind::corrupt_file, ErrorKind::io, ErrorKind::device_lost, ErrorKind::cancelled})
    if (name == name_of(kind)) return kind;
  return ErrorKind::io;
}

// The sentence without the folder that the model lies in.
std::string without_folder(std::string text, const std::filesystem::path& model) {
  const std::string folder = model.parent_path().string() + "/";
  for (size_t at = 0; folder.size() > 1 && (at = text.find(folder, at)) != std::string::npos;)
    text.erase(at, folder.size());
  return text;
}

}  // namespace

Refusal refusal_of(const Event& error, const std::filesystem::path& model) {
  const ErrorKind kind = kind_of(error.reason);
  return {.kind = kind == ErrorKind::invalid_argument ? ErrorKind::corrupt_file : kind,
          .message = without_folder(error.text, model),
          .code = error.code,
          .needed_bytes = error.needed_bytes,
          .usable_bytes = error.usable_bytes};
}

}  // namespace hearth::server
