#include "server/front/frame_log.h"

#include <gtest/gtest.h>

namespace hearth::server::test {
namespace {

TEST(FrameLog, numbers_frames_and_gives_those_that_follow_one) {
  FrameLog log(1000);
  EXPECT_EQ(log.last(), 0);
  EXPECT_EQ(log.add(R"({"type":"a"})"), R"({"seq": 1, "type":"a"})");
  log.add(R"({"type":"b"})");
  log.add(R"({"type":"c"})");
  EXPECT_EQ(log.last(), 3);
  const std::vector<std::string> last = {R"({"seq": 3, "type":"c"})"};
  EXPECT_EQ(log.after(2), last);
  EXPECT_EQ(log.after(0)->size(), 3u);
  EXPECT_EQ(log.after(3)->size(), 0u);
  EXPECT_EQ(log.after(4), std::nullopt);
}

TEST(FrameLog, keeps_the_last_frames_within_its_bytes) {
  FrameLog log(100);
  const std::string frame = "{\"text\":\"" + std::string(20, 'x') + "\"}";
  for (int i = 0; i < 50; ++i) log.add(frame);
  EXPECT_LE(log.bytes(), 100u);
  EXPECT_EQ(log.last(), 50);
  EXPECT_EQ(log.after(48)->size(), 2u);
  EXPECT_EQ(log.after(40), std::nullopt);
  log.add("{\"text\":\"" + std::string(500, 'x') + "\"}");
  EXPECT_EQ(log.after(50)->size(), 1u);  // larger than all may be, and still the last one
  EXPECT_EQ(log.after(49), std::nullopt);
}

}  // namespace
}  // namespace hearth::server::test
