// Files on the wire: they come with the frame that names them, and with no other.
#include "server/wire.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::server {
namespace {

using test::outcome;

class Files : public ::testing::Test {
 protected:
  Files() {
    const WirePair pair = make_wire_pair();
    front_fd_ = pair.front;
    front_ = std::make_unique<Wire>(pair.front);
    worker_ = std::make_unique<Wire>(pair.worker, Wire::Files::taken);
  }
  Descriptor file(const std::string& content) {
    const auto path = dir_.write("f" + std::to_string(count_++), content);
    return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  static std::string bytes_of(FrameKind kind, size_t files, const std::string& more = "") {
    json::Object body;
    json::Array names;
    for (size_t i = 0; i < files; ++i) names.emplace_back("file");
    body["files"] = std::move(names);
    body["more"] = more;
    std::string bytes;
    append_frame(bytes, {kind, std::move(body)});
    return bytes;
  }
  void send(size_t named, const std::vector<std::string>& contents, FrameKind kind = FrameKind::adapter_mount) {
    std::vector<Descriptor> files;
    for (const std::string& content : contents) files.push_back(file(content));
    front_->send_files(bytes_of(kind, named), files);
  }
  static std::string content(const Descriptor& file) {
    char text[64] = {};
    const ssize_t n = ::pread(file.get(), text, sizeof text, 0);
    return {text, static_cast<size_t>(std::max<ssize_t>(n, 0))};
  }
  static size_t open_files() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += !entry.path().empty();
    return count;
  }

  test::TempDir dir_;
  int count_ = 0, front_fd_ = -1;
  std::unique_ptr<Wire> front_, worker_;
};

TEST(Frames, hold_what_a_body_may_nest) {
  const auto deep = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  json::Object body;
  body["value"] = json::parse(deep(kFrameDepthMax - 1), "test", {.depth = kFrameDepthMax});
  std::string bytes;
  append_frame(bytes, {FrameKind::submit, std::move(body)});
  size_t at = 0;
  EXPECT_TRUE(take_frame(bytes, at));
  EXPECT_EQ(at, bytes.size());
}

TEST_F(Files, each_frame_has_its_own) {
  json::Object plain;
  plain["id"] = 1;
  const size_t before = open_files();
  std::thread sender([&] {
    front_->send({FrameKind::cancel, plain});
    send(2, {"config a", "weights a"});
    front_->send({FrameKind::cancel, plain});
    send(1, {"config b"}, FrameKind::adapter_describe);
    send(2, {"config c", "weights c"});
    // A frame that takes many reads.
    std::vector<Descriptor> files;
    files.push_back(file("config d"));
    front_->send_files(bytes_of(FrameKind::adapter_describe, 1, std::string(3 << 20, 'x')), files);
    front_->send({FrameKind::drain, json::Object()});
  });
  const std::vector<std::vector<std::string>> want = {
      {}, {"config a", "weights a"}, {}, {"config b"}, {"config c", "weights c"}, {"config d"}, {}};
  for (const auto& contents : want) {
    const std::optional<Frame> frame = worker_->receive();
    ASSERT_TRUE(frame);
    std::vector<std::string> got;
    for (const Descriptor& each : frame->files) {
      got.push_back(content(each));
      EXPECT_NE(::fcntl(each.get(), F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_EQ(got, contents);
  }
  sender.join();
  EXPECT_EQ(open_files(), before) << "they are closed with their frames";
}

TEST_F(Files, too_few_and_too_many_break_the_rules) {
  send(2, {"one"});
  EXPECT_EQ(outcome([&] { worker_->receive(); }), "corrupt_file: a frame names 2 files, 1 came");
  const WirePair pair = make_wire_pair();
  front_ = std::make_unique<Wire>(pair.front);
  worker_ = std::make_unique<Wire>(pair.worker, Wire::Files::taken);
  send(0, {"one"}, FrameKind::cancel);
  EXPECT_EQ(outcome([&] { worker_->receive(); }), "corrupt_file: 1 files came that no frame names");
}

TEST_F(Files, a_frame_of_an_adapter_names_files) {
  front_->send({FrameKind::adapter_mount, json::Object()});
  EXPECT_EQ(outcome([&] { worker_->receive(); }), "corrupt_file: a frame of an adapter without files");
}

TEST_F(Files, a_message_has_so_many_at_most) {
  constexpr size_t kMany = kFrameFilesMax + 2;
  std::vector<Descriptor> files;
  for (size_t i = 0; i < kMany; ++i) files.push_back(file("x"));
  const size_t before = open_files();
  std::string bytes = bytes_of(FrameKind::adapter_mount, kMany);
  iovec all{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMany)] = {};
  msghdr message{};
  message.msg_iov = &all;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * kMany);
  for (size_t i = 0; i < kMany; ++i) {
    const int fd = files[i].get();
    std::memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
  }
  ASSERT_GT(::sendmsg(front_fd_, &message, 0), 0);
  EXPECT_EQ(outcome([&] { worker_->receive(); }), "corrupt_file: a message with more than 4 files");
  worker_.reset();
  EXPECT_EQ(open_files(), before - 1) << "the wire's own end is closed, and no file stays open";
}

TEST_F(Files, the_front_takes_none) {
  std::swap(front_, worker_);  // now the sender is the end that takes files
  const size_t before = open_files();
  send(1, {"secret"}, FrameKind::adapter_describe);
  EXPECT_EQ(outcome([&] { worker_->receive(); }), "corrupt_file: a frame names 1 files, 0 came");
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace hearth::server
