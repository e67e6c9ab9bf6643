// What a model's files say of pooling: every source and its order, refusals with their exact words.
#include "model/embedding.h"

#include <gtest/gtest.h>

#include <map>

#include "formats/builders.h"
#include "model/model.h"
#include "support/outcome.h"
#include "support/tiny_encoder.h"
#include "support/tiny_model.h"

namespace hearth::model {
namespace {

using graph::Pooling;
using test::outcome;

struct Files final : SmallFiles {
  std::map<std::string, std::string> texts;
  explicit Files(std::map<std::string, std::string> t) : texts(std::move(t)) {}
  std::optional<std::string> read(const std::string& name) const override {
    const auto found = texts.find(name);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  }
  std::string place(const std::string& name) const override { return name; }
};

ModelSpec spec(bool encoder) {
  ModelSpec s;
  s.order = encoder ? LayerOrder::encoder : LayerOrder::pre_norm;
  s.D = 384;
  s.context = 512;
  return s;
}

std::string show(const std::optional<EmbeddingSpec>& e) {
  if (!e) return "none";
  return fmt::format("{}{} {}{}", name_of(e->pooling), e->normalize ? " normalized" : "", e->tokens_max,
                     e->include_prompt ? "" : " without prompt");
}

std::string read(std::map<std::string, std::string> files, bool encoder = true, bool lowers = true) {
  std::string text;
  const std::string failure = outcome(
      [&] { text = show(embedding_of_folder(Files(std::move(files)), spec(encoder), [&] { return lowers; })); });
  return failure == "accepted" ? text : failure;
}

std::string modules(std::initializer_list<std::pair<const char*, const char*>> list) {
  std::string text;
  for (const auto& [type, path] : list)
    text += fmt::format(R"({}{{"type": "{}", "path": "{}"}})", text.empty() ? "" : ", ", type, path);
  return "[" + text + "]";
}
const std::string kModules = modules({{"sentence_transformers.models.Transformer", ""},
                                      {"sentence_transformers.models.Pooling", "1_Pooling"},
                                      {"sentence_transformers.models.Normalize", "2_Normalize"}});
const std::string kBare = modules({{"Transformer", ""}, {"Pooling", "1_Pooling"}});
std::string pooling(const std::string& mode) { return fmt::format(R"({{"pooling_mode_{}": true}})", mode); }

TEST(Embedding, modules_say_pooling_and_length) {
  EXPECT_EQ(read({{"modules.json", kModules}, {"1_Pooling/config.json", pooling("mean_tokens")}}),
            "mean normalized 512");
  EXPECT_EQ(read({{"modules.json", kBare}, {"1_Pooling/config.json", pooling("cls_token")}}), "cls 512");
  EXPECT_EQ(read({{"modules.json", kModules}, {"1_Pooling/config.json", pooling("lasttoken")}}, false),
            "last normalized 512");
  EXPECT_EQ(read({{"modules.json", kBare},
                  {"1_Pooling/config.json", R"({"pooling_mode": "mean", "embedding_dimension": 384,
                    "pooling_mode_cls_token": false, "include_prompt": false})"},
                  {"sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})"}}),
            "mean 256 without prompt");
  EXPECT_EQ(read({{"modules.json", modules({{"Transformer", "0_T"}, {"Pooling", "p"}})},
                  {"p/config.json", pooling("cls_token")},
                  {"0_T/sentence_bert_config.json", R"({"max_seq_length": 9000})"},
                  {"sentence_bert_config.json", R"({"max_seq_length": 3})"}}),
            "cls 512");
}

TEST(Embedding, without_modules_the_other_files_and_the_architecture_speak) {
  EXPECT_EQ(read({}), "mean normalized 512");
  EXPECT_EQ(read({}, false), "none");
  EXPECT_EQ(read({{"1_Pooling/config.json", pooling("cls_token")}}), "cls normalized 512");
  EXPECT_EQ(read({{"1_Pooling/config.json", pooling("mean_tokens")}}, false), "mean normalized 512");
  EXPECT_EQ(read({{"config_sentence_transformers.json", "{}"}}, false), "last normalized 512");
  EXPECT_EQ(read({{"sentence_bert_config.json", R"({"max_seq_length": 100})"}}, false), "last normalized 100");
}

TEST(Embedding, refusals) {
  const auto with_pooling = [](const std::string& config) {
    return read({{"modules.json", kModules}, {"1_Pooling/config.json", config}});
  };
  EXPECT_EQ(with_pooling(pooling("max_tokens")),
            "invalid_argument: 1_Pooling/config.json: pooling \"max_tokens\" is not supported; supported: mean, cls, "
            "lasttoken");
  EXPECT_EQ(with_pooling(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})"),
            "invalid_argument: 1_Pooling/config.json: pooling \"mean_tokens + cls_token\" is not supported; supported: "
            "mean, cls, lasttoken");
  EXPECT_EQ(with_pooling(R"({"pooling_mode_mean_tokens": false})"),
            "corrupt_file: 1_Pooling/config.json: no pooling mode is true");
  EXPECT_EQ(with_pooling(R"({"pooling_mode_mean_tokens": 1})"),
            "corrupt_file: 1_Pooling/config.json: pooling_mode_mean_tokens: expected a boolean, found a number");
  EXPECT_EQ(with_pooling(R"({"word_embedding_dimension": 768, "pooling_mode_mean_tokens": true})"),
            "corrupt_file: 1_Pooling/config.json: word_embedding_dimension is 768, the model's width is 384");
  EXPECT_EQ(with_pooling("[]"), "corrupt_file: 1_Pooling/config.json: expected an object, found an array");
  EXPECT_EQ(read({{"modules.json", kModules}}), "corrupt_file: 1_Pooling/config.json is absent, modules.json names it");
  EXPECT_EQ(read({{"modules.json", "[]"}}), "corrupt_file: modules.json: no Pooling module");
  EXPECT_EQ(read({{"modules.json", "{}"}}), "corrupt_file: modules.json: expected an array, found an object");
  EXPECT_EQ(read({{"modules.json", R"([{"path": ""}])"}}), "corrupt_file: modules.json: module 0 has no type");
  const std::string wanted = " is not supported; supported: Transformer, Pooling and perhaps Normalize";
  EXPECT_EQ(read({{"modules.json", modules({{"Transformer", ""}, {"a.Pooling", "p"}, {"x.models.Dense", "d"}})},
                  {"p/config.json", pooling("mean_tokens")}}),
            "invalid_argument: modules.json: module 2 of type \"x.models.Dense\"" + wanted);
  EXPECT_EQ(read({{"modules.json", modules({{"Pooling", "p"}})}}),
            "invalid_argument: modules.json: module 0 of type \"Pooling\"" + wanted);
  for (const char* path : {"..", ".", "/etc", "a/b"})
    EXPECT_EQ(read({{"modules.json", modules({{"Transformer", path}})}}),
              "corrupt_file: modules.json: path is no plain name");
  EXPECT_EQ(read({{"sentence_bert_config.json", R"({"max_seq_length": 0})"}}),
            "corrupt_file: sentence_bert_config.json: max_seq_length is 0");
  EXPECT_EQ(read({{"sentence_bert_config.json", R"({"do_lower_case": true})"}}, true, false),
            "invalid_argument: sentence_bert_config.json: do_lower_case beside a tokenizer that keeps capitals is not "
            "supported");
}

TEST(Embedding, of_a_folder_on_disk) {
  const test::TempDir dir;
  const auto encoder = test::open_tiny_encoder({}, dir);
  EXPECT_EQ(show(encoder->embedding()), "mean normalized 32");
  const test::TempDir other;
  const auto decoder = test::open_tiny_model({}, other);
  EXPECT_EQ(show(decoder->embedding()), "none");
  other.write("1_Pooling/config.json", pooling("lasttoken"));
  EXPECT_EQ(show(decoder->embedding()), "last normalized 512");
}

std::string of_gguf(std::optional<uint32_t> type, bool encoder) {
  test::GgufBytes bytes(0, type ? 2 : 1);
  bytes.key("general.architecture", 8).string("qwen3");
  if (type) bytes.scalar<uint32_t>("qwen3.pooling_type", 4, *type);
  bytes.data(0);
  const auto file = formats::GgufFile::parse(test::as_bytes(bytes.text), "m.gguf");
  std::string text;
  const std::string failure = outcome([&] { text = show(embedding_of_gguf(file, spec(encoder))); });
  return failure == "accepted" ? text : failure;
}

TEST(Embedding, of_a_gguf) {
  EXPECT_EQ(of_gguf({}, false), "none");
  EXPECT_EQ(of_gguf(0, false), "none");
  EXPECT_EQ(of_gguf({}, true), "mean normalized 512");
  EXPECT_EQ(of_gguf(1, true), "mean normalized 512");
  EXPECT_EQ(of_gguf(2, true), "cls normalized 512");
  EXPECT_EQ(of_gguf(3, false), "last normalized 512");
  EXPECT_EQ(of_gguf(4, true),
            "invalid_argument: m.gguf: qwen3.pooling_type 4 is not supported; supported: 1 (mean), 2 "
            "(cls), 3 (last)");
}

}  // namespace
}  // namespace hearth::model
