#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/log.h"
#include "formats/model_card.h"
#include "model/open.h"

namespace hearth::model {
namespace {

constexpr size_t kTokenizerBytesMax = 256u << 20;
constexpr size_t kTemplateBytesMax = 4u << 20, kCardBytesMax = 4u << 20;

std::string read(const std::filesystem::path& path, size_t bytes_max) {
  return io::real_fs().read_file(path, bytes_max);
}

class DirModel final : public Model {
 public:
  explicit DirModel(const std::filesystem::path& path)
      : dir_(formats::ModelDir::open(path)), files_(formats::Safetensors::open_dir(path)) {
    path_ = path;
    spec_ = parse_config(dir_.config, (path / "config.json").string());
    weights_ = safetensors_weights(spec_, dir_, files_);
    check_layers(spec_, *weights_);
    if (!weights_->has("lm_head")) spec_.tied = true;
    read_generation();
    read_kv();
    read_templates();
    read_license();
  }

  std::string_view format() const override { return "safetensors"; }

  std::vector<ListedTensor> tensors() const override {
    std::vector<ListedTensor> list;
    for (const formats::SafeTensor& t : files_.tensors()) {
      if (t.name.ends_with(".scales") || t.name.ends_with(".biases")) continue;
      if (t.name.ends_with("position_ids")) continue;  // 0, 1, 2, ... of old encoders' files: no weight
      list.push_back(listed(t));
    }
    return list;
  }

  std::optional<EmbeddingSpec> embedding() const override {
    return embedding_of_folder(path_, spec_, [&] {
      return std::ranges::any_of(tokenizer().normalizers, [](const text::NormalizerStep& step) {
        const auto* bert = std::get_if<text::BertNormalizer>(&step);
        return std::holds_alternative<text::Lowercase>(step) || (bert && bert->lowercase);
      });
    });
  }

  text::TokenizerTables tokenizer() const override {
    const formats::TokenizerFiles& files = dir_.tokenizer;
    text::TokenizerTables tables;
    if (files.tokenizer_json) {
      tables =
          text::parse_tokenizer_json(read(*files.tokenizer_json, kTokenizerBytesMax), files.tokenizer_json->string());
    } else if (files.tokenizer_model) {
      const std::string bytes = read(*files.tokenizer_model, kTokenizerBytesMax);
      tables = text::parse_sentencepiece_model(std::as_bytes(std::span(bytes)), files.tokenizer_model->string());
    } else if (files.vocab_json && files.merges_txt) {
      tables = text::tables_from_vocab_merges(read(*files.vocab_json, kTokenizerBytesMax),
                                              read(*files.merges_txt, kTokenizerBytesMax), files.vocab_json->string());
    } else if (files.vocab_txt) {
      tables = text::tables_from_vocab_txt(read(*files.vocab_txt, kTokenizerBytesMax), files.vocab_txt->string());
    } else {
      fail(ErrorKind::not_found,
           "{}: no tokenizer (tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt)",
           path_.string());
    }
    const auto given = [](const std::optional<std::filesystem::path>& path) {
      using File = text::TokenizerConfigFiles::File;
      return path ? std::optional(File{read(*path, kTokenizerBytesMax), path->string()}) : std::nullopt;
    };
    text::apply_config_files(tables, {.tokenizer_config = given(files.tokenizer_config),
                                      .special_tokens_map = given(files.special_tokens_map),
                                      .added_tokens = given(files.added_tokens)});
    return tables;
  }

 private:
  void read_generation() {
    if (!dir_.generation_config) return;
    add_end_ids(dir_.generation_config->get("eos_token_id"), (path_ / "generation_config.json: eos_token_id").string(),
                spec_);
    if (const json::Object* object = dir_.generation_config->object()) generation_config_ = *object;
  }

  void read_kv() {
    if (!dir_.kv_config) return;
    kv_.assign(static_cast<size_t>(spec_.L), graph::KvFormat::bf16);
    for (const formats::KvLayer& layer : *dir_.kv_config) {
      if (layer.layer >= spec_.L)
        fail(ErrorKind::corrupt_file, "{}: layer {} of {} layers", (path_ / "kv_config.json").string(), layer.layer,
             spec_.L);
      kv_[static_cast<size_t>(layer.layer)] = layer.bits == 8 ? graph::KvFormat::q8 : graph::KvFormat::q4;
    }
  }

  // Of the model card; a card that cannot be read says nothing.
  void read_license() {
    const std::filesystem::path card = path_ / "README.md";
    try {
      if (io::real_fs().exists(card)) license_ = formats::license_of_card(read(card, kCardBytesMax));
    } catch (const Error& error) {
      log::debug("model", "{}", error.what());
    }
  }

  // The member chat_template of a JSON file: a string, or a list of {name, template}.
  void read_templates_of(const std::filesystem::path& path) {
    const std::string place = path.string() + ": chat_template";
    const json::Value document = json::parse(read(path, kTokenizerBytesMax), path.string());
    const json::Value* t = document.get("chat_template");
    if (!t) return;
    if (const std::string* whole = t->string()) {
      templates_ = {{"default", *whole}};
      return;
    }
    Templates named;
    for (const json::Value& entry : t->as_array(place)) {
      const json::Value *name = entry.get("name"), *source = entry.get("template");
      if (!name || !source) fail(ErrorKind::corrupt_file, "{}: an entry lacks name or template", place);
      if (!named.emplace(name->as_string(place), source->as_string(place)).second)
        fail(ErrorKind::corrupt_file, "{}: two templates are named \"{}\"", place, name->as_string(place));
    }
    templates_ = std::move(named);
  }

  // Each source replaces all that those before it said: chat_template.json (of processors), tokenizer_config.json,
  // and the template files, chat_template.jinja and additional_chat_templates/NAME.jinja.
  void read_templates() {
    if (dir_.tokenizer.chat_template_json) read_templates_of(*dir_.tokenizer.chat_template_json);
    if (dir_.tokenizer.tokenizer_config) read_templates_of(*dir_.tokenizer.tokenizer_config);
    Templates files;
    if (dir_.tokenizer.chat_template_jinja)
      files["default"] = read(*dir_.tokenizer.chat_template_jinja, kTemplateBytesMax);
    const std::filesystem::path more = path_ / "additional_chat_templates";
    std::error_code ec;
    if (std::filesystem::is_directory(more, ec))
      for (const io::Entry& entry : io::real_fs().list(more))
        if (!entry.is_dir && entry.name.ends_with(".jinja"))
          files[entry.name.substr(0, entry.name.size() - 6)] = read(more / entry.name, kTemplateBytesMax);
    if (!files.empty()) templates_ = std::move(files);
  }

  // Shapes as stored; affine modules by the quantization table.
  ListedTensor listed(const formats::SafeTensor& t) const {
    const auto dims = t.shape.dims();
    ListedTensor out{.name = t.name,
                     .type = ascii::lower(t.dtype_name),
                     .shape = {dims.begin(), dims.end()},
                     .values = t.shape.size(),
                     .bytes = static_cast<int64_t>(t.data.size())};
    if (!t.name.ends_with(".weight") || dims.empty()) return out;
    const std::string module = t.name.substr(0, t.name.size() - 7);
    const formats::SafeTensor *scales = files_.find(module + ".scales"), *biases = files_.find(module + ".biases");
    if (!scales || !biases || scales->shape.rank() == 0 || !scales->dtype) return out;
    const int64_t words = dims.back(), groups = scales->shape.dims().back();
    // words * 32 = groups * G * bits: every pair (bits, G) of the table fits exactly one way.
    const formats::QuantEntry entry =
        dir_.quantization ? quant_entry(*dir_.quantization, module) : formats::QuantEntry{};
    if (entry.bits == 0 || words * 32 != groups * entry.group * entry.bits) return out;
    out.type = name_of(PackedFormat{Codec::affine, entry.bits, entry.group, *scales->dtype});
    out.shape.back() = groups * entry.group;
    out.values = t.shape.size() / words * out.shape.back();
    out.bytes += static_cast<int64_t>(scales->data.size() + biases->data.size());
    return out;
  }

  formats::ModelDir dir_;
  formats::Safetensors files_;
};

}  // namespace

std::unique_ptr<Model> open_dir(const std::filesystem::path& path) { return std::make_unique<DirModel>(path); }

std::unique_ptr<Model> Model::open(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return open_dir(path);
  return open_gguf(path);
}

}  // namespace hearth::model
