// What Models may serve, told from folders alone: no file of a model is opened.
#include <algorithm>

#include "hub/local_models.h"
#include "server/front/models.h"

namespace hearth::server {

std::vector<LocalModel> Models::local() const {
  std::vector<LocalModel> models;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) models.push_back({id, entry.found, id == default_id_});
  }
  if (options_.allowed.empty() && !options_.only_default)
    for (hub::FoundModel& found : hub::local_models(store_)) {
      const bool known =
          std::any_of(models.begin(), models.end(), [&](const LocalModel& m) { return m.found.path == found.path; });
      if (!known) models.push_back({found.name, found, false});
    }
  std::stable_sort(models.begin(), models.end(),
                   [](const LocalModel& a, const LocalModel& b) { return a.serving > b.serving; });
  return models;
}

}  // namespace hearth::server
