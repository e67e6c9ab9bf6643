#include "net/listen.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "net/fixture.h"
#include "net/port_owner.h"
#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::net::test {
namespace {

using hearth::test::outcome;
using hearth::test::TempDir;

TEST(Listen, a_port_in_use_is_named) {
  const Listener first = listen_tcp("127.0.0.1", 0);
  EXPECT_GT(first.port, 0);
  EXPECT_EQ(first.address, "127.0.0.1:" + std::to_string(first.port));
  EXPECT_EQ(outcome([&] { listen_tcp("127.0.0.1", first.port); }), "io: 127.0.0.1:" + std::to_string(first.port) +
                                                                       ": the port is in use by process " +
                                                                       std::to_string(::getpid()) + " (test_net)");
  EXPECT_EQ(owner_of_port(first.port), "process " + std::to_string(::getpid()) + " (test_net)");
}

TEST(Listen, a_port_nobody_listens_on_has_no_owner) {
  int port = 0;
  {
    const Listener listener = listen_tcp("127.0.0.1", 0);
    port = listener.port;
  }
  EXPECT_EQ(owner_of_port(port), "");
}

TEST(Listen, hosts) {
  EXPECT_GT(listen_tcp("localhost", 0).port, 0);
  EXPECT_TRUE(outcome([] { listen_tcp("192.0.2.1", 0); }).starts_with("io: 192.0.2.1:0: bind: "));
  EXPECT_EQ(outcome([] { listen_tcp("127.0.0.1", 65536); }), "invalid_argument: port is 65536, expected 0 to 65535");
}

TEST(Listen, unix_sockets_serve_and_are_private) {
  const TempDir dir;
  const std::string path = dir.path() / "socket";
  {
    const Server server({.host = "", .unix_path = path});
    EXPECT_EQ(server.port(), 0);
    struct stat there{};
    ASSERT_EQ(::stat(path.c_str(), &there), 0);
    EXPECT_EQ(there.st_mode & 0777, 0600u);
    RawClient client(path);
    EXPECT_EQ(client.ask(get("/describe")).body, "GET /describe  unix ");
    EXPECT_EQ(outcome([&] { listen_unix(path); }), "io: " + path + ": another process listens there");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Listen, a_stale_socket_file_is_replaced_and_others_are_not) {
  const TempDir dir;
  const std::string path = dir.path() / "socket";
  {
    const Listener left = listen_unix(path);
  }  // as a killed process leaves it
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(outcome([&] { listen_unix(path); }), "accepted");
  const std::string file = dir.write("file", "precious");
  EXPECT_EQ(outcome([&] { listen_unix(file); }), "io: " + file + ": there is a file that is no socket");
  EXPECT_EQ(hearth::test::read_bytes(file), "precious");
  const std::string longer = dir.path() / std::string(120, 'x');
  EXPECT_TRUE(
      outcome([&] { listen_unix(longer); }).starts_with("io: " + longer + ": a socket's path has 1 to 107 bytes"));
}

// between bind() and listen() a socket looks stale; who holds the folder's lock is about to listen.
TEST(Listen, a_socket_that_is_about_to_listen_is_not_taken_for_a_stale_one) {
  const TempDir dir;
  const std::string path = dir.path() / "socket";
  std::optional<Descriptor> lock(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock->get(), LOCK_EX), 0);
  const Descriptor other(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::string said;
  std::thread starter([&] { said = outcome([&] { listen_unix(path); }); });
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(::listen(other.get(), 8), 0);
  lock.reset();
  starter.join();
  EXPECT_EQ(said, "io: " + path + ": another process listens there");
  const RawClient client(path);
  pollfd comes{other.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&comes, 1, kPatienceMs), 1);
}

// Each would take the other's socket for the stale one. One serves, at the path; the other says why it does not.
TEST(Listen, of_several_starters_at_a_stale_socket_one_wins) {
  const TempDir dir;
  const std::string path = dir.path() / "socket";
  for (int round = 0; round < 100; ++round) {
    std::filesystem::remove(path);
    {
      const Listener left = listen_unix(path);
    }
    std::vector<std::string> said(4);
    std::vector<Listener> kept(said.size());
    std::atomic<bool> go{false};
    std::vector<std::thread> starters;
    for (size_t i = 0; i < said.size(); ++i)
      starters.emplace_back([&, i] {
        while (!go) std::this_thread::yield();
        said[i] = outcome([&] { kept[i] = listen_unix(path); });
      });
    go = true;
    for (std::thread& starter : starters) starter.join();
    ASSERT_EQ(std::ranges::count(said, "accepted"), 1) << round;
    ASSERT_EQ(std::ranges::count(said, "io: " + path + ": another process listens there"), 3) << round;
    RawClient client(path);
    const auto winner = static_cast<size_t>(std::ranges::find(said, "accepted") - said.begin());
    pollfd comes{kept[winner].socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&comes, 1, kPatienceMs), 1) << "somebody else's socket stands at the path";
  }
}

TEST(Listen, both_kinds_at_once) {
  const TempDir dir;
  const std::string path = dir.path() / "socket";
  const Server server({.unix_path = path});
  EXPECT_EQ(server.client().ask(get("/hello")).body, "hello");
  EXPECT_EQ(RawClient(path).ask(get("/hello")).body, "hello");
}

TEST(Listen, inherited_sockets) {
  ::setenv("LISTEN_PID", "1", 1);  // meant for another process
  ::setenv("LISTEN_FDS", "1", 1);
  EXPECT_TRUE(inherited_listeners().empty());
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
  std::vector<Listener> listeners;
  listeners.push_back(listen_tcp("127.0.0.1", 0));
  const int port = listeners[0].port;
  const Server server({.host = "", .inherited = std::move(listeners)});
  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(server.client().ask(get("/hello")).body, "hello");
}

// As systemd hands them over, from descriptor 3 on. In a process of its own: what 3 and 4 were before is lost.
[[noreturn]] void takes_over_two_sockets(const std::string& path) {
  const Listener tcp = listen_tcp("127.0.0.1", 0), local = listen_unix(path);
  const int a = ::fcntl(tcp.socket.get(), F_DUPFD, 100), b = ::fcntl(local.socket.get(), F_DUPFD, 100);
  ::dup2(a, 3);
  ::dup2(b, 4);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "2", 1);
  const std::vector<Listener> found = inherited_listeners();
  const bool fine = found.size() == 2 && found[0].host == "127.0.0.1" && found[0].port == tcp.port &&
                    found[0].address == tcp.address && found[1].host.empty() && found[1].port == 0 &&
                    found[1].address == path && (::fcntl(3, F_GETFD) & FD_CLOEXEC) != 0;
  ::_exit(fine ? 0 : 1);
}

TEST(Listen, inherited_sockets_say_where_they_listen) {
  const TempDir dir;
  EXPECT_EXIT(takes_over_two_sockets(dir.path() / "socket"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hearth::net::test
