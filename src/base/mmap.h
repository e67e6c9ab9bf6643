// Read-only memory maps of whole files.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace hearth {

class MappedFile {
 public:
  // Throws Error{not_found} when the path does not exist, Error{out_of_memory} when the address space has no room for
  // it, Error{io} when it cannot be opened or mapped otherwise.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile() noexcept;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // From here on, a mapped file that shrinks or cannot be read under its reader (SIGBUS) ends the process with exit
  // code 1 and one sentence on stderr that names the file, instead of a bare signal. Other SIGBUS keep their meaning.
  // Once, early in main.
  static void report_losses();

  // Tells the kernel that [offset, offset + size) is not needed any more (after a repack), so resident memory falls.
  void release(size_t offset, size_t size) const;

 private:
  struct Region;  // of the list that the handler below reads

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<Region> region_;
};

}  // namespace hearth
