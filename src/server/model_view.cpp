#include "server/model_view.h"

namespace hearth::server {

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::absent: return "absent";
    case ModelState::queued: return "queued";
    case ModelState::loading: return "loading";
    case ModelState::ready: return "ready";
    case ModelState::waits_for_restart: return "restarting";
    case ModelState::failed: return "failed";
  }
  return "";
}

}  // namespace hearth::server
