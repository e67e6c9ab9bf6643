#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/open.h"

namespace hearth::model {
namespace {

class GgufModel final : public Model {
 public:
  explicit GgufModel(const std::filesystem::path& path) : file_(formats::GgufFile::open(path)) {
    path_ = path;
    spec_ = parse_gguf(file_);
    weights_ = gguf_weights(spec_, file_);
    check_layers(spec_, *weights_);
    license_ = std::string(file_.string("general.license").value_or(""));
    constexpr std::string_view kTemplate = "tokenizer.chat_template";
    if (const auto source = file_.string(kTemplate)) templates_["default"] = std::string(*source);
    for (const formats::GgufValue& v : file_.values())
      if (v.key.starts_with(kTemplate) && v.key.size() > kTemplate.size() + 1 && v.type == formats::GgufType::string)
        templates_[std::string(v.key.substr(kTemplate.size() + 1))] = std::string(*file_.string(v.key));
  }

  std::string_view format() const override { return "gguf"; }

  std::vector<ListedTensor> tensors() const override {
    std::vector<ListedTensor> list;
    for (const formats::GgufTensor& t : file_.tensors())
      list.push_back({.name = std::string(t.name),
                      .type = name_of(t.format),
                      .shape = t.shape(),
                      .values = t.N() * t.K(),
                      .bytes = static_cast<int64_t>(t.data.size())});
    return list;
  }

  std::optional<EmbeddingSpec> embedding() const override { return embedding_of_gguf(file_, spec_); }

  text::TokenizerTables tokenizer() const override {
    text::GgufTokenizer t;
    const std::string prefix = "tokenizer.ggml.";
    const auto model = file_.string(prefix + "model");
    if (!model) fail(ErrorKind::not_found, "{}: the file holds no tokenizer (tokenizer.ggml.model)", file_.name());
    t.model = std::string(*model);
    t.pre = std::string(file_.string(prefix + "pre").value_or(""));
    copy_strings(prefix + "tokens", t.tokens);
    copy_strings(prefix + "merges", t.merges);
    if (const auto scores = array(prefix + "scores", &formats::GgufArray::holds_numbers))
      for (size_t i = 0; i < scores->size(); ++i) t.scores.push_back(static_cast<float>(scores->number(i)));
    if (const auto types = array(prefix + "token_type", &formats::GgufArray::holds_integers))
      for (size_t i = 0; i < types->size(); ++i) t.types.push_back(types->integer(i));
    t.bos = file_.integer(prefix + "bos_token_id");
    t.eos = file_.integer(prefix + "eos_token_id");
    t.eot = file_.integer(prefix + "eot_token_id");
    t.eom = file_.integer(prefix + "eom_token_id");
    t.unk = file_.integer(prefix + "unknown_token_id");
    t.pad = file_.integer(prefix + "padding_token_id");
    t.sep = file_.integer(prefix + "seperator_token_id");  // the format's own spelling
    t.cls = file_.integer(prefix + "cls_token_id");
    t.add_bos = file_.boolean(prefix + "add_bos_token");
    t.add_eos = file_.boolean(prefix + "add_eos_token");
    t.add_sep = file_.boolean(prefix + "add_sep_token");
    t.add_space_prefix = file_.boolean(prefix + "add_space_prefix");
    t.remove_extra_whitespaces = file_.boolean(prefix + "remove_extra_whitespaces");
    copy_bytes(prefix + "precompiled_charsmap", t.precompiled_charsmap);
    return text::tables_from_gguf(t, file_.name());
  }

 private:
  void copy_strings(const std::string& key, std::vector<std::string>& out) const {
    if (const auto strings = file_.strings(key)) {
      out.reserve(strings->size());
      for (const std::string_view s : *strings) out.emplace_back(s);
    }
  }
  // Bytes that a writer may have stored in any integer type.
  void copy_bytes(const std::string& key, std::string& out) const {
    const auto list = array(key, &formats::GgufArray::holds_integers);
    for (size_t i = 0; list && i < list->size(); ++i) {
      const int64_t byte = list->integer(i);
      if (byte < INT8_MIN || byte > UINT8_MAX)
        fail(ErrorKind::corrupt_file, "{}: {}[{}] is {}, a byte is expected", file_.name(), key, i, byte);
      out += static_cast<char>(byte);
    }
  }
  std::optional<formats::GgufArray> array(const std::string& key, bool (formats::GgufArray::*holds)() const) const {
    const auto a = file_.array(key);
    if (a && !((*a).*holds)())
      fail(ErrorKind::corrupt_file, "{}: {} holds {} values", file_.name(), key, name_of(a->type));
    return a;
  }

  formats::GgufFile file_;
};

}  // namespace

std::unique_ptr<Model> open_gguf(const std::filesystem::path& path) { return std::make_unique<GgufModel>(path); }

}  // namespace hearth::model
