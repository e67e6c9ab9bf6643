// What Models tells of its models; nothing here changes one, or when it goes.
#include <algorithm>

#include "server/front/model_files.h"
#include "server/front/models.h"

namespace hearth::server {

using std::chrono::milliseconds;

ModelView Models::view(const std::string& id, const Entry& entry) const {
  WorkerActivity activity = entry.worker ? entry.worker->activity() : WorkerActivity();
  activity.waiting += static_cast<int64_t>(entry.waiters.size());
  std::optional<milliseconds> unload_in = entry.state == ModelState::ready ? ttl_of(entry) : std::nullopt;
  if (unload_in && idle(entry)) {
    const auto unused = std::chrono::duration_cast<milliseconds>(Clock::now() - entry.used);
    unload_in = std::max(milliseconds(0), *unload_in - unused);
  }
  return {.id = id,
          .path = entry.found.path.string(),
          .repo = entry.found.repo,
          .revision = entry.found.revision,
          .state = entry.state,
          .pinned = entry.pinned,
          .is_default = id == names_.default_id(),
          .facts = entry.facts,
          .open_requests = entry.worker ? entry.worker->open_requests() : 0,
          .restarts = entry.restarts,
          .activity = activity,
          .unload_in = unload_in,
          .problem = entry.problem,
          .pid = entry.worker ? entry.worker->pid() : -1};
}

std::vector<ModelView> Models::list() const {
  const std::vector<LocalModel> all = names_.all();
  std::vector<ModelView> views;
  {
    const std::lock_guard lock(mutex_);
    for (const LocalModel& model : all) {
      const auto known = entries_.find(model.id);
      Entry absent;
      absent.found = model.found;
      views.push_back(view(model.id, known == entries_.end() ? absent : known->second));
    }
  }
  for (ModelView& view : views) view.modified_s = modified_s(view.path);
  return views;
}

std::vector<ModelView> Models::resident() const {
  std::vector<ModelView> views;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (entry.state != ModelState::absent) views.push_back(view(id, entry));
  return views;
}

std::shared_ptr<WorkerLink> Models::at_hand(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.state == ModelState::ready ? found->second.worker : nullptr;
}

int64_t Models::silence_ms() const {
  int64_t longest = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (entry.worker) longest = std::max(longest, entry.worker->silence_ms());
  return longest;
}

bool Models::is_wedged() const {
  int64_t allowed = 0;
  {
    const std::lock_guard lock(mutex_);
    allowed = options_.watchdog.count();
  }
  return allowed > 0 && silence_ms() >= allowed;
}

int64_t Models::restarts() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_) sum += entry.restarts;
  return sum;
}

}  // namespace hearth::server
