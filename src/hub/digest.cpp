#include "hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"

namespace hearth::hub {

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(Kind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* type = kind == Kind::sha1 ? EVP_sha1() : EVP_sha256();
  HEARTH_CHECK(state_->context && EVP_DigestInit_ex(state_->context, type, nullptr) == 1);
}

Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  HEARTH_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Digest::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HEARTH_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
}

}  // namespace hearth::hub
