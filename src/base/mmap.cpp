#include "base/mmap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace hearth {

// A live map, where a signal handler finds it: a slot of a fixed table, taken and given back without locks. Maps beyond
// the table's size work as ever and are only not named when they are lost.
struct MappedFile::Region {
  Region(const std::byte* data, size_t size, std::string path);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const std::byte* const data;
  const size_t size;
  const std::string path;

  static constexpr size_t kMax = 1024;
  static std::array<std::atomic<const Region*>, kMax> live;
  static_assert(std::atomic<const Region*>::is_always_lock_free);
  static void on_bus_error(int signal, siginfo_t* info, void*);
};

std::array<std::atomic<const MappedFile::Region*>, MappedFile::Region::kMax> MappedFile::Region::live{};

MappedFile::Region::Region(const std::byte* d, size_t n, std::string p) : data(d), size(n), path(std::move(p)) {
  for (auto& slot : live)
    if (const Region* none = nullptr; slot.compare_exchange_strong(none, this)) return;
}

MappedFile::Region::~Region() {
  for (auto& slot : live)
    if (const Region* mine = this; slot.compare_exchange_strong(mine, nullptr)) return;
}

// Only calls that are allowed in a signal handler.
void MappedFile::Region::on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const auto& slot : live) {
    const Region* region = slot.load();
    if (!region || at < region->data || at >= region->data + region->size) continue;
    for (const std::string_view part : {std::string_view("hearth: "), std::string_view(region->path),
                                        std::string_view(": the file shrank or cannot be read while it is in use\n")})
      if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
    ::_exit(1);
  }
  // Not one of ours: the instruction runs again and meets the default action.
  ::signal(signal, SIG_DFL);
}

void MappedFile::report_losses() {
  struct sigaction action{};
  action.sa_sigaction = Region::on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait for a writer
  if (fd < 0)
    fail(errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, "{}: {}", path.string(),
         std::strerror(errno));
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(ErrorKind::io, "{}: not a regular file", path.string());
  }
  MappedFile file;
  file.path_ = path;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      fail(error == ENOMEM ? ErrorKind::out_of_memory : ErrorKind::io, "{}: cannot map {} bytes: {}", path.string(),
           file.size_, std::strerror(error));
    }
    file.data_ = static_cast<const std::byte*>(data);
    file.region_ = std::make_unique<Region>(file.data_, file.size_, path.string());
  }
  ::close(fd);
  return file;
}

MappedFile::MappedFile() noexcept = default;

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      region_(std::move(other.region_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(region_, other.region_);
  return *this;
}

MappedFile::~MappedFile() {
  region_.reset();
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(size_t offset, size_t size) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page, end = (offset + size) / page * page;
  if (data_ && begin < end && end <= size_)
    ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace hearth
