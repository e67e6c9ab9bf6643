#include "server/front/offline.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>

#include "server/seccomp_filter.h"

namespace hearth::server {

void leave_network() {
  SeccompFilter filter;
  filter.refuse_unless(SYS_socket, 0, AF_UNIX, EACCES);
  for (const int number : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register})  // makes sockets too
    filter.refuse(number, EPERM);
  filter.apply();
}

}  // namespace hearth::server
