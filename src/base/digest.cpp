#include "base/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/error.h"

namespace hearth {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

Context new_context() {
  Context context(EVP_MD_CTX_new());
  if (!context) throw std::bad_alloc();
  return context;
}

void require_ok(int status) {
  if (status != 1) fail(ErrorKind::io, "the crypto library refuses this digest");
}

struct FileDescriptor {
  int fd;
  ~FileDescriptor() { ::close(fd); }
};

constexpr size_t kPiece = 1 << 20;

}  // namespace

struct Digest::State {
  Context context = new_context();
};

Digest::Digest(Kind kind) : state_(std::make_unique<State>()) {
  require_ok(EVP_DigestInit_ex(state_->context.get(), kind == Kind::sha1 ? EVP_sha1() : EVP_sha256(), nullptr));
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::span<const std::byte> bytes) {
  require_ok(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Digest::hex() const {
  // Finishing spends a context, so a copy is finished.
  const Context copy = new_context();
  require_ok(EVP_MD_CTX_copy_ex(copy.get(), state_->context.get()));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require_ok(EVP_DigestFinal_ex(copy.get(), digest.data(), &size));
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

std::string sha256_hex(std::string_view bytes) {
  Digest digest(Digest::Kind::sha256);
  digest.add(bytes);
  return digest.hex();
}

std::string sha256_file(const std::filesystem::path& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    fail(errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, "{}: {}", path.string(),
         std::strerror(errno));
  Digest digest(Digest::Kind::sha256);
  std::vector<std::byte> piece(kPiece);
  for (;;) {
    const ssize_t got = ::read(file.fd, piece.data(), piece.size());
    if (got == 0) return digest.hex();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::io, "{}: read: {}", path.string(), std::strerror(errno));
    digest.add(std::span(piece).first(static_cast<size_t>(got)));
  }
}

}  // namespace hearth
