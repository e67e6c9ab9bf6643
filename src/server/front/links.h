// Links to workers as requests share them. A link joins its threads when it goes, so it may not go on one of them,
// where the last of its requests lets go of it: whoever does leaves it here, and it goes on the owner's thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/front/worker_link.h"

namespace hearth::server {

class Links {
 public:
  // Any thread. Throws Error{io} when the program cannot be started.
  std::shared_ptr<WorkerLink> start(const WorkerCommand& command, WorkerLink::Owner owner);

  // The owner's thread: destroys those that nobody holds any more.
  void destroy_buried();
  // The same at the end, when requests under way still hold theirs until they have heard of it. At most so long.
  void settle(std::chrono::milliseconds at_most);

  // Ends idle workers and waits for that: their memory is free again. What they write to the disk is finished first,
  // by all at once; those that take longer than `at_most` are killed. Not on a link's thread.
  static constexpr std::chrono::milliseconds kEnd{5'000};
  static void end(const std::vector<std::shared_ptr<WorkerLink>>& links, std::chrono::milliseconds at_most = kEnd);

 private:
  struct Graveyard {
    std::mutex mutex;
    std::condition_variable filled;
    std::vector<std::unique_ptr<WorkerLink>> links;
    int64_t living = 0;  // not yet destroyed
  };
  std::shared_ptr<Graveyard> graveyard_ = std::make_shared<Graveyard>();
};

}  // namespace hearth::server
