// Read-only memory maps of whole files.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace hearth {

class MappedFile {
 public:
  // Throws Error{not_found} when the path does not exist, Error{io} when it cannot be opened or mapped.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Tells the kernel that [offset, offset + size) is not needed any more (after a repack), so resident memory falls.
  void release(size_t offset, size_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth
