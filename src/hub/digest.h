// SHA-1 and SHA-256 over streams.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth::hub {

class Digest {
 public:
  enum class Kind { sha1, sha256 };
  explicit Digest(Kind kind);
  ~Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex();  // lower case; ends the digest

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::hub
