// Why a model is not to be had.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "server/generation.h"

namespace hearth::server {

// A kind, a sentence that a client may read, and the code that it gets.
struct Refusal {
  ErrorKind kind{};
  std::string message, code;
  int64_t needed_bytes = 0, usable_bytes = 0;  // where memory is short; 0: not known
};

// Of what an inner room threw: its sentence as client_sentence() has it, that of a ClientError as it stands.
Refusal refusal_of(const Error& error, std::span<const std::filesystem::path> folders = {});

// Of the exception that is handled where this is called, as with_error_at_hand() has it.
Refusal refusal_at_hand();

// Of what the worker of the model at `model` says: through client_sentence(), and with invalid_argument as
// corrupt_file, for the file is at fault and not the request.
Refusal refusal_of(const Event& error, const std::filesystem::path& model);

}  // namespace hearth::server
