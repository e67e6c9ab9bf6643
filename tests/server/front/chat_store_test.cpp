#include "server/front/chat_store.h"

#include <gtest/gtest.h>

#include "server/front/chat_socket.h"

namespace hearth::server::test {
namespace {

using std::chrono::milliseconds;

// The store holds conversations and never looks into them: these are none, but live and end like them.
std::shared_ptr<Chat> stand_in() {
  const auto life = std::make_shared<int>();
  return {life, reinterpret_cast<Chat*>(life.get())};
}

TEST(ChatStore, finds_what_is_at_a_socket_and_what_was_left) {
  FakeClock clock;
  ChatStore store(clock);
  auto chat = stand_in();
  store.add("me", "c", chat);
  EXPECT_EQ(store.find("me", "c"), chat);
  EXPECT_EQ(store.find("other", "c"), nullptr);
  EXPECT_EQ(store.find("me", "d"), nullptr);
  const std::weak_ptr<Chat> weak = chat;
  store.keep("me", "c", chat, 10);
  chat = nullptr;
  EXPECT_NE(store.find("me", "c"), nullptr);
  store.add("me", "c", store.find("me", "c"));  // it is at a socket again, which goes without leaving it here
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(store.find("me", "c"), nullptr);
}

TEST(ChatStore, what_was_left_goes_in_time_and_by_size) {
  FakeClock clock;
  ChatStore store(clock, {.bytes_max = 100, .ttl = milliseconds(1000)});
  const auto leave = [&](const char* id, int64_t bytes) {
    auto chat = stand_in();
    store.add("me", id, chat);
    store.keep("me", id, chat, bytes);
  };
  leave("a", 60);
  leave("b", 40);
  EXPECT_NE(store.find("me", "a"), nullptr);
  leave("c", 1);
  EXPECT_EQ(store.find("me", "a"), nullptr);
  EXPECT_NE(store.find("me", "b"), nullptr);
  leave("too large", 101);
  EXPECT_EQ(store.find("me", "too large"), nullptr);
  EXPECT_NE(store.find("me", "c"), nullptr);
  clock.advance(milliseconds(900));
  leave("d", 1);
  clock.advance(milliseconds(101));
  EXPECT_EQ(store.find("me", "b"), nullptr);
  EXPECT_NE(store.find("me", "d"), nullptr);
}

TEST(ChatStore, kept_twice_counts_once) {
  FakeClock clock;
  ChatStore store(clock, {.bytes_max = 100});
  const auto chat = stand_in();
  store.add("me", "a", chat);
  for (int i = 0; i < 10; ++i) store.keep("me", "a", chat, 60);
  auto other = stand_in();
  store.add("me", "b", other);
  store.keep("me", "b", other, 40);
  other = nullptr;
  EXPECT_NE(store.find("me", "b"), nullptr);
}

TEST(ChatStore, sockets_of_one_credential_are_counted) {
  FakeClock clock;
  ChatStore store(clock, {.sockets_max = 2});
  std::vector<std::shared_ptr<ChatSocket>> sockets;
  const auto open = [&](const char* holder) {
    const auto life = std::make_shared<int>();
    std::shared_ptr<ChatSocket> socket(life, reinterpret_cast<ChatSocket*>(life.get()));
    if (!store.add_socket(holder, socket)) return false;
    sockets.push_back(socket);
    return true;
  };
  EXPECT_TRUE(open("me"));
  EXPECT_TRUE(open("me"));
  EXPECT_FALSE(open("me"));
  EXPECT_TRUE(open("other"));
  sockets.erase(sockets.begin());
  EXPECT_TRUE(open("me"));
}

}  // namespace
}  // namespace hearth::server::test
