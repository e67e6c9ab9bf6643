// An open file that is closed with its owner.
#pragma once
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

namespace hearth::server {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }  // -1: none

 private:
  int fd_ = -1;
};

// Of several owners: who sends them keeps them open until they are on their way.
using Descriptors = std::shared_ptr<const std::vector<Descriptor>>;

}  // namespace hearth::server
