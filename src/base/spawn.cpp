#include "base/spawn.h"

#include <signal.h>

namespace hearth {

SpawnAttributes::SpawnAttributes(int apart) {
  posix_spawnattr_init(&attributes_);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes_, &none);
  posix_spawnattr_setsigdefault(&attributes_, &all);
  posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | apart));
}

}  // namespace hearth
