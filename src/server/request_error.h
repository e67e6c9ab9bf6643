// Errors whose sentences are for clients.
#pragma once
#include <string>
#include <utility>

#include "base/limit_error.h"

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
  // `limit`: the name of the one that is passed (server/limits.h); empty: none is.
  RequestError(std::string param, const std::string& message, std::string limit = {})
      : ClientError(ErrorKind::invalid_argument, message), param_(std::move(param)), limit_(std::move(limit)) {}
  const std::string& param() const { return param_; }
  const std::string& limit() const { return limit_; }

 private:
  std::string param_, limit_;
};

// Of either kind of error; empty: no limit was passed.
inline std::string limit_of(const Error& error) {
  if (const auto* request = dynamic_cast<const RequestError*>(&error)) return request->limit();
  if (const auto* limit = dynamic_cast<const LimitError*>(&error)) return limit->limit();
  return {};
}

}  // namespace hearth::server
