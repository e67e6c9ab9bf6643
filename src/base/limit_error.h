// A refusal for being over a bound that the one who runs the program may move.
#pragma once
#include <string>
#include <utility>

#include "base/error.h"

namespace hearth {

class LimitError : public Error {
 public:
  LimitError(std::string limit, const std::string& message, ErrorKind kind = ErrorKind::invalid_argument)
      : Error(kind, message), limit_(std::move(limit)) {}
  const std::string& limit() const { return limit_; }  // as the one who set the bound calls it

 private:
  std::string limit_;
};

// Throws LimitError with the formatted sentence.
template <class... Args>
[[noreturn]] void fail_limit(std::string_view limit, fmt::format_string<Args...> format, Args&&... args) {
  throw LimitError(std::string(limit), fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hearth
