// How links to workers end.
#include "server/front/links.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class LinksTest : public ScriptedModels {
 protected:
  std::shared_ptr<WorkerLink> worker(const std::string& name) { return start_worker(links_, name); }
  void TearDown() override { links_.settle(5s); }

  Links links_;
};

TEST_F(LinksTest, stuck_workers_hold_no_other_one_up) {
  write("stuck", "drain_ms 3600000");
  write("mute", "mute");  // it does not even hear that it is to end
  write("good", "drain_ms 1");
  const std::vector<std::shared_ptr<WorkerLink>> workers = {worker("stuck"), worker("stuck"), worker("mute"),
                                                            worker("good")};
  ASSERT_TRUE(comes([&] { return count("loaded stuck") == 2 && count("loaded mute") == 1; }));
  const auto ending = std::async(std::launch::async, [&] { Links::end(workers, 1h); });
  EXPECT_TRUE(comes([&] { return count("drained good") == 1; }, 60s)) << "the others were asked behind its end";
  for (size_t i = 0; i < 3; ++i) workers[i]->kill();
  ending.wait();
  for (const auto& one : workers) EXPECT_TRUE(one->wait_end(0ms));
}

TEST_F(LinksTest, stuck_workers_are_killed) {
  write("stuck", "drain_ms 3600000");
  write("mute", "mute");
  const std::vector<std::shared_ptr<WorkerLink>> workers = {worker("stuck"), worker("mute")};
  ASSERT_TRUE(comes([&] { return count("loaded stuck") == 1 && count("loaded mute") == 1; }));
  Links::end(workers, 100ms);
  for (const auto& one : workers) EXPECT_TRUE(one->wait_end(0ms));
  EXPECT_EQ(count("drained stuck"), 0);
}

}  // namespace
}  // namespace hearth::server
