#include "server/refusal.h"

#include "server/client_sentence.h"
#include "server/error_at_hand.h"

namespace hearth::server {
namespace {

ErrorKind kind_of(const std::string& name) {
  for (const ErrorKind kind :
       {ErrorKind::invalid_argument, ErrorKind::not_found, ErrorKind::busy, ErrorKind::out_of_memory,
        ErrorKind::corrupt_file, ErrorKind::io, ErrorKind::device_lost, ErrorKind::cancelled})
    if (name == name_of(kind)) return kind;
  return ErrorKind::io;
}

}  // namespace

Refusal refusal_of(const Error& error, std::span<const std::filesystem::path> folders) {
  const bool for_clients = dynamic_cast<const ClientError*>(&error) != nullptr;
  return {
      .kind = error.kind(), .message = for_clients ? error.what() : client_sentence(error.what(), folders), .code = {}};
}

Refusal refusal_at_hand() {
  return with_error_at_hand([](const Error& error) { return refusal_of(error); });
}

Refusal refusal_of(const Event& error, const std::filesystem::path& model) {
  const ErrorKind kind = kind_of(error.reason);
  const std::vector<std::filesystem::path> folders = with_parents(model);
  return {.kind = kind == ErrorKind::invalid_argument ? ErrorKind::corrupt_file : kind,
          .message = client_sentence(error.text, folders),
          .code = error.code,
          .needed_bytes = error.needed_bytes,
          .usable_bytes = error.usable_bytes};
}

}  // namespace hearth::server
