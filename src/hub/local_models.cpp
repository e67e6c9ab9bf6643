#include "hub/local_models.h"

namespace hearth::hub {

std::vector<FoundModel> local_models(const Store& store) {
  std::vector<FoundModel> models;
  for (const Snapshot& snapshot : store.list()) {
    if (!snapshot.format || !snapshot.problem.empty()) continue;
    const FoundModel whole{.path = snapshot.folder,
                           .format = *snapshot.format,
                           .name = snapshot.repo,
                           .repo = snapshot.repo,
                           .revision = snapshot.revision,
                           .adapter = ""};
    if (whole.format == ModelFormat::safetensors) models.push_back(whole);
    const std::vector<std::string> ggufs = snapshot.ggufs();
    for (const std::string& file : whole.format == ModelFormat::gguf ? ggufs : std::vector<std::string>()) {
      models.push_back(whole);
      models.back().path = snapshot.folder / file;
      if (ggufs.size() > 1) models.back().name = snapshot.repo + ":" + file;
    }
  }
  return models;
}

}  // namespace hearth::hub
