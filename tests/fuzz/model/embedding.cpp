// libFuzzer target: the small files that say how an embedding model pools. An input is "name\0text\0name\0text".
// Seeds: tests/fuzz/corpus/embedding, made by make_embedding_corpus.py.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "model/embedding.h"

namespace {

struct Files final : hearth::model::SmallFiles {
  std::map<std::string, std::string> texts;
  std::optional<std::string> read(const std::string& name) const override {
    const auto found = texts.find(name);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  }
  std::string place(const std::string& name) const override { return name; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  Files files;
  for (size_t at = 0; at < all.size();) {
    const size_t name = std::min(all.find('\0', at), all.size()), text = std::min(all.find('\0', name + 1), all.size());
    if (name == all.size()) break;
    files.texts[all.substr(at, name - at)] = all.substr(name + 1, text - name - 1);
    at = text + 1;
  }
  hearth::model::ModelSpec spec;
  spec.D = 384;
  spec.context = 512;
  for (const auto order : {hearth::model::LayerOrder::pre_norm, hearth::model::LayerOrder::encoder}) {
    spec.order = order;
    try {
      const auto embedding = hearth::model::embedding_of_folder(files, spec, [&] { return size % 2 == 0; });
      HEARTH_CHECK(!embedding || (embedding->tokens_max >= 1 && embedding->tokens_max <= spec.context));
    } catch (const hearth::Error&) {  // the answer to a bad file
    }
  }
  return 0;
}
