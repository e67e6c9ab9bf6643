// The number of layers that a config announces against those that the file holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "support/outcome.h"
#include "support/safetensors_file.h"
#include "support/temp_dir.h"

namespace hearth::model {
namespace {

using test::outcome;
using test::SafetensorsFile;
using test::TempDir;

std::string opened(int64_t announced, int64_t held) {
  TempDir dir;
  dir.write("config.json", fmt::format(R"({{"model_type": "llama", "num_hidden_layers": {}, "hidden_size": 64,
    "num_attention_heads": 1, "num_key_value_heads": 1, "intermediate_size": 64, "vocab_size": 4, "rope_theta": 10000}})",
                                       announced));
  SafetensorsFile file;
  for (int64_t layer = 0; layer < held; ++layer)
    file.add(fmt::format("model.layers.{}.input_layernorm.weight", layer), DType::f32, {64},
             std::vector<float>(64, 1.0f));
  dir.write("model.safetensors", file.bytes());
  const std::string text = outcome([&] { Model::open(dir.path()); });
  const size_t name = text.find("config.json: ");
  return name == std::string::npos ? text : text.substr(name);
}

TEST(LayersCheck, the_file_holds_what_is_announced) {
  EXPECT_EQ(opened(3, 3).find("config.json"), std::string::npos) << opened(3, 3);
  EXPECT_EQ(opened(4096, 3), "config.json: model.layers.3.input_layernorm is absent, 4096 layers are announced");
  EXPECT_EQ(opened(4, 3), "config.json: model.layers.3.input_layernorm is absent, 4 layers are announced");
  EXPECT_EQ(opened(2, 3), "config.json: model.layers.2.input_layernorm is there, only 2 layers are announced");
}

}  // namespace
}  // namespace hearth::model
