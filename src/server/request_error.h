// A field of a request at fault.
#pragma once
#include <string>
#include <utility>

#include "base/error.h"

namespace hearth::server {

// Thrown where a body is read, or where the worker cannot do what a field asks.
class RequestError : public Error {
 public:
  RequestError(std::string param, const std::string& message)
      : Error(ErrorKind::invalid_argument, message), param_(std::move(param)) {}
  const std::string& param() const { return param_; }

 private:
  std::string param_;
};

}  // namespace hearth::server
