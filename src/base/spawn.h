// How programs that we start begin: with signals as at a program's start, whatever this process blocks or ignores.
#pragma once
#include <spawn.h>

namespace hearth {

// Attributes for posix_spawn(). Owned by one thread.
class SpawnAttributes {
 public:
  // POSIX_SPAWN_SETPGROUP: a process group of its own; POSIX_SPAWN_SETSID: a session of its own; 0: neither.
  explicit SpawnAttributes(int apart);
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace hearth
