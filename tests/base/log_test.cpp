#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

namespace hearth::log {
namespace {

using namespace std::chrono_literals;

// A logger into a pipe, on a clock that stands at 2026-11-29T20:19:29.123Z.
class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    using namespace std::chrono;
    clock_.set_wall(sys_days{2026y / November / 29} + 20h + 19min + 29s + 123ms);
    options_ = {.fd = ends_[1], .clock = &clock_};
    logger_.configure(options_);
  }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void configure(const Options& options) { logger_.configure(options); }
  std::string written() {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::read(ends_[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

  int ends_[2] = {-1, -1};
  FakeClock clock_;
  Options options_;
  Logger logger_{Options{.fd = -1}};
};

TEST_F(LogTest, pretty_line) {
  logger_.write(Level::warn, "cpu", "kernel refused", {{"kernel", "gemm amx"}, {"rows", 7}, {"isa", "avx512"}});
  EXPECT_EQ(written(), "20:19:29.123 warn  cpu: kernel refused kernel=\"gemm amx\" rows=7 isa=avx512\n");
  options_.colour = true;
  configure(options_);
  logger_.write(Level::error, "cpu", "x");
  EXPECT_EQ(written(), "\x1b[31m20:19:29.123 error cpu: x\x1b[0m\n");
}

TEST_F(LogTest, ndjson_line) {
  options_.format = Format::ndjson;
  configure(options_);
  logger_.write(Level::info, "hub", "a \"quoted\"\nline", {{"bytes", 12}, {"msg", "mine"}});
  const json::Value line = json::parse(written(), "line");
  EXPECT_EQ(line.get("ts")->as_string("ts"), "2026-11-29T20:19:29.123Z");
  EXPECT_EQ(line.get("level")->as_string("level"), "info");
  EXPECT_EQ(line.get("room")->as_string("room"), "hub");
  EXPECT_EQ(line.get("msg")->as_string("msg"), "a \"quoted\"\nline");
  EXPECT_EQ(line.get("bytes")->as_int("bytes"), 12);
  EXPECT_EQ(line.get("msg_")->as_string("msg_"), "mine");
}

TEST_F(LogTest, levels_below_are_dropped) {
  options_.level = Level::warn;
  configure(options_);
  logger_.write(Level::info, "x", "no");
  logger_.write(Level::off, "x", "no");
  EXPECT_EQ(written(), "");
  EXPECT_TRUE(logger_.recent(10).empty());
  EXPECT_FALSE(logger_.wants(Level::info));
  EXPECT_TRUE(logger_.wants(Level::error));
  options_.level = Level::off;
  configure(options_);
  EXPECT_FALSE(logger_.wants(Level::error));
}

TEST_F(LogTest, secrets_reach_neither_the_line_nor_the_ring) {
  logger_.add_secret("tiger-lily");
  logger_.write(Level::info, "hub", "key tiger-lily and hf_AbCdEfGhIjKl",
                {{"authorization", "anything"}, {"url", "https://u:p@h/"}, {"list", json::Array{"tiger-lily"}}});
  const std::string line = written();
  const Line kept = logger_.recent(1).at(0);
  const std::string ring = format_ndjson(kept);
  for (const std::string_view secret : {"tiger", "AbCd", "anything", "u:p"}) {
    EXPECT_EQ(line.find(secret), std::string::npos) << line;
    EXPECT_EQ(ring.find(secret), std::string::npos) << ring;
  }
  EXPECT_EQ(kept.message, "key *** and hf_***");
}

TEST_F(LogTest, a_line_stays_one_line_of_valid_text) {
  logger_.write(Level::info, "x", "a\nb\x1b[2J\xff\xc2\x9b c\xc3\xa9\xed\xa0\x80");
  EXPECT_EQ(
      written(),
      "20:19:29.123 info  x: a\\x0ab\\x1b[2J\xef\xbf\xbd\\xc2\\x9b c\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n");
}

TEST_F(LogTest, long_messages_are_cut_between_characters_after_redaction) {
  options_.message_bytes_max = 10;
  configure(options_);
  logger_.write(Level::info, "x", "12345678\xc3\xa9\xc3\xa9");
  EXPECT_EQ(logger_.recent(1).at(0).message, "12345678\xc3\xa9... (2 bytes more)");
  logger_.write(Level::info, "x", "123456789\xc3\xa9");
  EXPECT_EQ(logger_.recent(1).at(0).message, "123456789... (2 bytes more)");
  logger_.add_secret("secret words that are long");
  logger_.write(Level::info, "x", "a secret words that are long");
  EXPECT_EQ(logger_.recent(1).at(0).message, "a ***");
}

TEST_F(LogTest, the_ring_keeps_the_newest_lines) {
  options_.ring_lines = 3;
  options_.fd = -1;
  configure(options_);
  for (int i = 1; i <= 5; ++i) logger_.write(Level::info, "x", std::to_string(i));
  const auto sequences = [](const std::vector<Line>& lines) {
    std::vector<uint64_t> result;
    for (const Line& line : lines) result.push_back(line.sequence);
    return result;
  };
  EXPECT_EQ(sequences(logger_.recent(10)), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(sequences(logger_.recent(2)), (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(sequences(logger_.recent(10, 4)), (std::vector<uint64_t>{5}));
  EXPECT_TRUE(logger_.recent(10, 5).empty());
  options_.ring_lines = 1;
  configure(options_);
  EXPECT_EQ(sequences(logger_.recent(10)), (std::vector<uint64_t>{5}));
}

TEST_F(LogTest, threads_write_whole_lines) {
  constexpr int kThreads = 4, kLines = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLines; ++i) logger_.write(Level::info, "t", fmt::format("{}/{}", t, i));
    });
  for (std::thread& thread : threads) thread.join();
  std::string text = written();
  std::set<std::string> lines;
  for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    const std::string line = text.substr(0, end);
    ASSERT_TRUE(line.starts_with("20:19:29.123 info  t: ")) << line;
    lines.insert(line);
  }
  EXPECT_EQ(text, "");
  EXPECT_EQ(lines.size(), size_t{kThreads * kLines});
}

TEST_F(LogTest, a_closed_or_full_output_stops_nothing) {
  std::string filler(1 << 16, 'x');
  while (::write(ends_[1], filler.data(), filler.size()) > 0) {
  }
  logger_.write(Level::info, "x", "into a full pipe");
  options_.fd = 1'000'000;
  configure(options_);
  logger_.write(Level::info, "x", "into nothing");
  EXPECT_EQ(logger_.recent(10).size(), 2u);
}

TEST(LogLevel, names_go_both_ways) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error, Level::off})
    EXPECT_EQ(level_of(name_of(level)), level);
  EXPECT_FALSE(level_of("loud"));
  EXPECT_FALSE(level_of(""));
}

}  // namespace
}  // namespace hearth::log
