#include "server/front/offline.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <thread>

namespace hearth::server {
namespace {

// In a process of its own, which ends with the number of what was not as it should be.
int behind_the_filter(int listener) {
  std::promise<void> done;
  int of_thread = 0;
  std::thread thread([&] {  // it is there before
    done.get_future().wait();
    of_thread = ::socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
  });
  leave_network();
  done.set_value();
  thread.join();
  if (of_thread != EACCES) return 1;
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK})
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW})
      if (::socket(family, type, 0) >= 0 || errno != EACCES) return 2;
  if (::socket(AF_UNIX, SOCK_STREAM, 0) < 0) return 3;
  const int accepted = ::accept(listener, nullptr, nullptr);
  char byte = 0;
  if (accepted < 0 || ::read(accepted, &byte, 1) != 1 || ::write(accepted, &byte, 1) != 1) return 4;
  return 0;
}

TEST(OfflineDeathTest, listeners_go_on_and_no_socket_of_the_network_is_made) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EXIT(
      {
        const int client = ::socket(AF_INET, SOCK_STREAM, 0);
        if (::connect(client, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::write(client, "x", 1) != 1)
          std::_Exit(9);
        std::_Exit(behind_the_filter(listener));
      },
      testing::ExitedWithCode(0), "");
  ::close(listener);
}

}  // namespace
}  // namespace hearth::server
