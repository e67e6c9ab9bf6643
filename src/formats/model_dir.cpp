#include "formats/model_dir.h"

#include "base/error.h"
#include "base/fs.h"

namespace hearth::formats {
namespace {

std::optional<std::filesystem::path> present(const std::filesystem::path& path) {
  return io::real_fs().exists(path) ? std::optional(path) : std::nullopt;
}

std::string read(const std::filesystem::path& path) { return io::real_fs().read_file(path, kConfigBytesMax); }

}  // namespace

ModelDir ModelDir::open(const std::filesystem::path& dir) {
  ModelDir model;
  model.path = dir;
  const auto config = dir / "config.json";
  model.config = parse_config(read(config), config.string());
  model.quantization = QuantTable::of(model.config, config.string());
  if (const auto path = present(dir / "generation_config.json"))
    model.generation_config = parse_config(read(*path), path->string());
  if (const auto path = present(dir / "kv_config.json")) model.kv_config = parse_kv_config(read(*path), path->string());

  model.tokenizer = {.tokenizer_json = present(dir / "tokenizer.json"),
                     .tokenizer_config = present(dir / "tokenizer_config.json"),
                     .tokenizer_model = present(dir / "tokenizer.model"),
                     .vocab_json = present(dir / "vocab.json"),
                     .merges_txt = present(dir / "merges.txt"),
                     .vocab_txt = present(dir / "vocab.txt"),
                     .added_tokens = present(dir / "added_tokens.json"),
                     .special_tokens_map = present(dir / "special_tokens_map.json"),
                     .chat_template_jinja = present(dir / "chat_template.jinja"),
                     .chat_template_json = present(dir / "chat_template.json")};
  return model;
}

}  // namespace hearth::formats
