// Why a model is not to be had.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "server/generation.h"

namespace hearth::server {

// An Error's kind and sentence, and the code that a client gets.
struct Refusal {
  ErrorKind kind{};
  std::string message, code;
  int64_t needed_bytes = 0, usable_bytes = 0;  // where memory is short; 0: not known
};

// Of what the worker of the model at `model` says: without the folder that the model lies in, and with
// invalid_argument as corrupt_file, for the file is at fault and not the request.
Refusal refusal_of(const Event& error, const std::filesystem::path& model);

}  // namespace hearth::server
