// The one error policy: failures throw hearth::Error, bugs abort (HEARTH_CHECK), absence is std::optional.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth {

enum class ErrorKind { invalid_argument, not_found, busy, out_of_memory, corrupt_file, io, device_lost, cancelled };

std::string_view name_of(ErrorKind kind);

// Process exit code of a kind: 1 failed, 2 usage, 3 not found, 4 refused by admission, 130 interrupted.
int exit_code(ErrorKind kind);

// A kind and one sentence with the culprit and the numbers, e.g.
// "linear layers.3.q: weight is [2048, 2048] but x has K = 1024".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Throws Error{kind} with the formatted sentence.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
}

}  // namespace hearth

// For what no input can cause: prints the condition and the message to stderr, then aborts.
#define HEARTH_CHECK(condition, ...)                                                                 \
  do {                                                                                               \
    if (!(condition)) [[unlikely]]                                                                   \
      ::hearth::detail::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (0)
