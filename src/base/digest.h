// SHA-256 and SHA-1 over streams (FIPS 180-4): checking files, naming blobs and snapshots.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// One thread. SHA-1 only where another tool's format asks for it: it keeps nobody from forging.
class Digest {
 public:
  enum class Kind { sha1, sha256 };
  explicit Digest(Kind kind);  // Error{io} when the crypto library refuses the kind
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex() const;  // of all bytes so far, lower case; more may be added after

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

// Reads in pieces of 1 MiB. Throws Error{not_found} when the path does not exist, Error{io} when reading fails.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace hearth
