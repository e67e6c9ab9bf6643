// Errors whose sentences are for clients.
#pragma once
#include <string>
#include <utility>

#include "base/error.h"

namespace hearth::server {

// Written for clients: they get the sentence as it stands. What any other Error says reaches them through
// client_sentence().
class ClientError : public Error {
 public:
  using Error::Error;
};

// A field of a request at fault: thrown where a body is read, or where the worker cannot do what a field asks.
class RequestError : public ClientError {
 public:
  RequestError(std::string param, const std::string& message)
      : ClientError(ErrorKind::invalid_argument, message), param_(std::move(param)) {}
  const std::string& param() const { return param_; }

 private:
  std::string param_;
};

}  // namespace hearth::server
