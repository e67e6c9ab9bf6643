#include "decode/prefix_disk.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/checksum.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"

namespace hearth::decode {
namespace {

// Of everything that a cached value depends on. The number of threads is not among it.
std::string fingerprint_of(Engine& engine, const std::string& model) {
  std::string device = engine.executor().info().name;
  device = device.substr(0, device.find(','));
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}", model, device, name_of(engine.options().numerics),
                                kv_layout(engine.cache().groups())))
      .substr(0, 32);
}

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(n), b.begin()).first - a.begin();
}

bool read_at(std::FILE* file, uint64_t at, std::span<std::byte> to) {
  size_t got = 0;
  while (got < to.size()) {
    const ssize_t n = ::pread(::fileno(file), to.data() + got, to.size() - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

PrefixRestore::PrefixRestore(Engine& engine, Sequence sequence, std::shared_ptr<std::FILE> file, KvFileReader reader,
                             std::filesystem::path path)
    : engine_(engine),
      sequence_(std::move(sequence)),
      file_(std::move(file)),
      reader_(std::move(reader)),
      path_(std::move(path)) {}

PrefixRestore::~PrefixRestore() { engine_.cache().free(sequence_); }

bool PrefixRestore::advance(int64_t bytes) {
  for (; group_ < sequence_.pages.size(); ++group_, page_ = 0) {
    const std::vector<int32_t>& pages = sequence_.pages[group_];
    for (; std::cmp_less(page_, pages.size()); ++page_) {
      const int32_t page = pages[static_cast<size_t>(page_)];
      if (page < 0) continue;
      if (bytes <= 0) return false;
      buffer_.resize(static_cast<size_t>(engine_.page_bytes()[group_]));
      reader_.read_page(group_, page_, buffer_);
      engine_.kv().write_page(static_cast<int32_t>(group_), page, buffer_);
      bytes -= static_cast<int64_t>(buffer_.size());
    }
  }
  return true;
}

Sequence PrefixRestore::take() { return std::exchange(sequence_, engine_.cache().make()); }

PrefixDisk::PrefixDisk(Engine& engine, PrefixDiskOptions options)
    : engine_(engine),
      options_(std::move(options)),
      groups_(engine.cache().groups().begin(), engine.cache().groups().end()) {
  if (options_.dir.empty()) fail(ErrorKind::invalid_argument, "the disk cache has no directory");
  if (options_.model.empty()) fail(ErrorKind::invalid_argument, "the disk cache is not told which model it is for");
  if (options_.bytes_max < 0)
    fail(ErrorKind::invalid_argument, "disk-cache-max is {}, expected 0 or more", options_.bytes_max);
  fingerprint_ = fingerprint_of(engine, options_.model);
  options_.fs->make_dirs(options_.dir / fingerprint_);
  folder_ = std::make_unique<PrefixFolder>(*options_.fs, options_.dir, fingerprint_);
  load();
  thread_ = std::thread([this] { work(); });
}

PrefixDisk::~PrefixDisk() {
  give_up_pages();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  collect();
}

void PrefixDisk::load() {
  const std::filesystem::path dir = options_.dir / fingerprint_;
  for (const io::Entry& space : options_.fs->list(dir)) {
    if (!space.is_dir) continue;
    for (const io::Entry& file : options_.fs->list(dir / space.name))
      if (!file.is_dir && file.name.ends_with(kPrefixSuffix)) load_file(dir / space.name / file.name, space.name);
  }
}

void PrefixDisk::load_file(const std::filesystem::path& path, const std::string& space) {
  try {
    uint64_t bytes = 0;
    const std::shared_ptr<std::FILE> file = open(path, bytes);
    const KvFileReader reader([&](uint64_t at, std::span<std::byte> to) { return read_at(file.get(), at, to); }, bytes,
                              groups_, path.string());
    const KvFileHead& head = reader.head();
    if (head.fingerprint != fingerprint_ || head.space != space)
      fail(ErrorKind::corrupt_file, "{}: it belongs to another model or space", path.string());
    entries_.push_back({path, space, head.ids, static_cast<int64_t>(bytes)});
  } catch (const Error& error) {
    remove(path, error.what());
  }
}

std::shared_ptr<std::FILE> PrefixDisk::open(const std::filesystem::path& path, uint64_t& bytes) const {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait for a writer
  const std::shared_ptr<std::FILE> file(descriptor < 0 ? nullptr : ::fdopen(descriptor, "rb"), [](std::FILE* f) {
    if (f) std::fclose(f);
  });
  if (!file && descriptor >= 0) ::close(descriptor);
  struct stat info{};
  if (!file || ::fstat(::fileno(file.get()), &info) != 0)
    fail(ErrorKind::not_found, "{}: it cannot be opened", path.string());
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::io, "{}: not a regular file", path.string());
  bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

void PrefixDisk::forget(const std::filesystem::path& path) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.path == path; });
}

void PrefixDisk::remove(const std::filesystem::path& path, std::string_view why) {
  log::warn("decode", "a stored prefix is of no use and goes: {}", why);
  forget(path);
  ++counts_.failures;
  try {
    options_.fs->remove(path);
  } catch (const Error& error) {
    log::warn("decode", "{}", error.what());
  }
}

// Positions of ids that the file restores: those before the first difference, where it has the pages that the next one
// sees.
int64_t PrefixDisk::usable(const Entry& entry, std::span<const int32_t> ids, int64_t most) const {
  const int64_t length = std::min(common_prefix(entry.ids, ids), most), stored = static_cast<int64_t>(entry.ids.size());
  for (const graph::KvGroup& group : groups_)
    if (first_page_seen(group, length) < first_page_seen(group, stored)) return 0;
  return length < options_.positions_min ? 0 : length;
}

const PrefixDisk::Entry* PrefixDisk::best(std::string_view space, std::span<const int32_t> ids, int64_t most,
                                          int64_t& length) const {
  length = 0;
  const Entry* found = nullptr;
  if (entries_.empty()) return found;
  const std::string digest = sha256_hex(space);
  for (const Entry& entry : entries_)
    if (entry.space == digest)
      if (const int64_t n = usable(entry, ids, most); n > length) {
        length = n;
        found = &entry;
      }
  return found;
}

int64_t PrefixDisk::match_length(std::string_view space, std::span<const int32_t> ids, int64_t most) const {
  int64_t length;
  best(space, ids, most, length);
  return length;
}

std::unique_ptr<PrefixRestore> PrefixDisk::restore(std::string_view space, std::span<const int32_t> ids, int64_t most) {
  int64_t length;
  const Entry* entry = best(space, ids, most, length);
  if (!entry) return nullptr;
  const std::filesystem::path path = entry->path;
  const std::string digest = entry->space;
  try {
    uint64_t bytes = 0;
    const std::shared_ptr<std::FILE> file = open(path, bytes);
    KvFileReader reader([f = file.get()](uint64_t at, std::span<std::byte> to) { return read_at(f, at, to); }, bytes,
                        groups_, path.string());
    if (reader.head().fingerprint != fingerprint_ || reader.head().space != digest ||
        common_prefix(reader.head().ids, ids) < length)
      fail(ErrorKind::corrupt_file, "{}: it was exchanged", path.string());
    std::optional<Sequence> sequence = engine_.cache().blank(ids.first(static_cast<size_t>(length)));
    if (!sequence) return nullptr;
    ::futimens(::fileno(file.get()), nullptr);  // it was used now
    ++counts_.restores;
    return std::unique_ptr<PrefixRestore>(
        new PrefixRestore(engine_, std::move(*sequence), file, std::move(reader), path));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) forget(path);  // another process made room
    else remove(path, error.what());
    return nullptr;
  }
}

void PrefixDisk::drop(const PrefixRestore& failed, const Error& error) { remove(failed.path_, error.what()); }

// Of the pages of such a prefix, without the head.
int64_t PrefixDisk::file_bytes(int64_t length) const {
  int64_t bytes = 0;
  for (const graph::KvGroup& group : groups_)
    bytes += (pages_of(length) - first_page_seen(group, length)) * kv_file_page_bytes(group);
  return bytes;
}

bool PrefixDisk::takes(const Sequence& s) const {
  const int64_t length = s.length();
  return length >= options_.positions_min && file_bytes(length) <= options_.bytes_max &&
         engine_.cache().reusable_length(s, length) == length;
}

bool PrefixDisk::holds(std::string_view space, const Sequence& s) {
  int64_t length;
  const Entry* entry = best(space, s.ids, s.length(), length);
  if (!entry || length != s.length()) return false;
  const std::filesystem::path path = entry->path;
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0) return true;
  forget(path);  // another process made room
  return false;
}

void PrefixDisk::keep(std::string_view space, const Sequence& s) {
  const int64_t length = s.length();
  if (!takes(s)) return;
  Job job{.entry = {.path = {}, .space = sha256_hex(space), .ids = s.ids, .bytes = file_bytes(length)},
          .sequence = {},
          .supersedes = {}};
  int64_t there;
  best(space, s.ids, length, there);
  if (there == length) return;
  const bool windows = std::ranges::any_of(groups_, [](const graph::KvGroup& group) { return group.window > 0; });
  for (const Entry& entry : entries_)  // with windows a longer one may lack the pages that a shorter one sees
    if (!windows && entry.space == job.entry.space &&
        common_prefix(entry.ids, s.ids) == static_cast<int64_t>(entry.ids.size()))
      job.supersedes.push_back(entry.path);
  const std::span<const int32_t> ids = s.ids;
  const std::string_view raw(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
  job.entry.path =
      options_.dir / fingerprint_ / job.entry.space / (sha256_hex(raw).substr(0, 32) + std::string(kPrefixSuffix));
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kQueueMax) return;
    for (const auto& other : queue_)
      if (other->entry.path == job.entry.path) return;
    job.sequence = engine_.cache().fork(s);
    queue_.push_back(std::make_shared<Job>(std::move(job)));
  }
  changed_.notify_all();
}

void PrefixDisk::collect() {
  std::vector<std::shared_ptr<Job>> done;
  std::vector<std::filesystem::path> removed;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
    removed.swap(removed_);
    counts_.failures += std::exchange(failures_, 0);
  }
  for (const std::filesystem::path& path : removed) forget(path);
  for (const auto& job : done) {
    engine_.cache().free(job->sequence);
    if (!job->written) continue;
    for (const std::filesystem::path& path : job->supersedes) forget(path);
    forget(job->entry.path);
    entries_.push_back(std::move(job->entry));
    ++counts_.spills;
  }
}

bool PrefixDisk::give_up_pages() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const std::lock_guard lock(mutex_);  // a page is copied under it
    for (const auto& job : queue_) {
      if (job->given_up) continue;
      job->given_up = true;
      jobs.push_back(job);
    }
  }
  bool any = !jobs.empty();
  for (const auto& job : jobs) engine_.cache().free(job->sequence);
  {
    const std::lock_guard lock(mutex_);
    any |= !done_.empty();
  }
  collect();
  return any;
}

void PrefixDisk::flush() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty(); });
  }
  collect();
}

bool PrefixDisk::flush_within(std::chrono::nanoseconds at_most) {
  bool all = false;
  {
    std::unique_lock lock(mutex_);
    all = changed_.wait_for(lock, at_most, [&] { return queue_.empty(); });
  }
  if (!all) give_up_pages();
  collect();
  return all;
}

PrefixDisk::Counts PrefixDisk::counts() const {
  Counts counts = counts_;
  counts.entries = static_cast<int64_t>(entries_.size());
  for (const Entry& entry : entries_) counts.bytes += entry.bytes;
  return counts;
}

void PrefixDisk::work() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);  // the engine's threads go first
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      job = queue_.front();
    }
    bool failed = false;
    try {
      write(*job);
    } catch (const std::exception& error) {
      failed = true;
      log::warn("decode", "a prefix is not stored: {}", error.what());
    }
    {
      const std::lock_guard lock(mutex_);
      failures_ += failed;
      done_.push_back(job);
      queue_.pop_front();
    }
    changed_.notify_all();
  }
}

// False: the engine has taken the pages back.
bool PrefixDisk::copy_page(const Job& job, size_t group, int32_t page, std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  if (job.given_up) return false;
  engine_.kv().read_page(static_cast<int32_t>(group), page, to);
  return true;
}

// Twice over the pages: the checksums stand in front of them.
void PrefixDisk::write(Job& job) {
  const auto length = static_cast<int64_t>(job.entry.ids.size());
  std::vector<std::vector<int32_t>> pages;
  {
    const std::lock_guard lock(mutex_);
    if (job.given_up) return;
    pages = job.sequence.pages;
  }
  std::vector<std::byte> buffer;
  const auto each = [&](auto&& use) {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (int64_t i = first_page_seen(groups_[g], length); i < pages_of(length); ++i) {
        buffer.assign(static_cast<size_t>(kv_file_page_bytes(groups_[g])), std::byte{});
        const std::span<std::byte> page =
            std::span(buffer).first(static_cast<size_t>(graph::kv_page_bytes(groups_[g])));
        if (!copy_page(job, g, pages[g][static_cast<size_t>(i)], page)) return false;
        use(page);
      }
    return true;
  };
  KvFileHead head{
      .fingerprint = fingerprint_,
      .space = job.entry.space,
      .created = std::chrono::floor<std::chrono::seconds>(options_.clock->wall()).time_since_epoch().count(),
      .ids = job.entry.ids,
      .page_checksums = {}};
  if (!each([&](std::span<const std::byte> page) { head.page_checksums.push_back(checksum(page)); })) return;
  const std::string text = kv_file_head(head, groups_);
  job.entry.bytes += static_cast<int64_t>(text.size());
  make_room(job.entry.bytes);
  options_.fs->make_dirs(job.entry.path.parent_path());
  io::AtomicFile file(*options_.fs, job.entry.path, 0600);
  file.write(text);
  if (!each([&](std::span<const std::byte>) { file.write(std::span<const std::byte>(buffer)); })) return;
  file.commit();
  for (const std::filesystem::path& path : job.supersedes) options_.fs->remove(path);
  const std::lock_guard lock(mutex_);
  job.written = true;
}

void PrefixDisk::make_room(int64_t bytes) {
  make_prefix_room(*options_.fs, options_.dir, bytes, options_.bytes_max, [&](const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    removed_.push_back(path);
  });
}

}  // namespace hearth::decode
