// Module paths to GGUF tensor names (spec models 15).
#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/weights.h"

namespace hearth::model {
namespace {

struct Pair {
  std::string_view module, tensor;
};
// Inside a layer. The norm in front of the MLP is ffn_norm, whatever the hub calls it.
constexpr Pair kPreNorm[] = {{"post_attention_layernorm", "ffn_norm"}};
constexpr Pair kSandwich[] = {{"post_attention_layernorm", "post_attention_norm"},
                              {"pre_feedforward_layernorm", "ffn_norm"},
                              {"post_feedforward_layernorm", "post_ffw_norm"}};
constexpr Pair kLayer[] = {{"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
                           {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
                           {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
                           {"self_attn.k_norm", "attn_k_norm"}, {"mlp.gate_proj", "ffn_gate"},
                           {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
constexpr Pair kTop[] = {{"model.embed_tokens", "token_embd"},
                         {"model.norm", "output_norm"},
                         {"lm_head", "output"},
                         {"model.embeddings.word_embeddings", "token_embd"},
                         {"model.embeddings.position_embeddings", "position_embd"},
                         {"model.embeddings.token_type_embeddings", "token_types"},
                         {"model.embeddings.LayerNorm", "token_embd_norm"}};
// Inside a layer of an encoder.
constexpr Pair kEncoder[] = {{"attention.self.query", "attn_q"},
                             {"attention.self.key", "attn_k"},
                             {"attention.self.value", "attn_v"},
                             {"attention.output.dense", "attn_output"},
                             {"attention.output.LayerNorm", "attn_output_norm"},
                             {"intermediate.dense", "ffn_up"},
                             {"output.dense", "ffn_down"},
                             {"output.LayerNorm", "layer_output_norm"}};

class GgufWeights final : public WeightTable {
 public:
  GgufWeights(const ModelSpec& spec, const formats::GgufFile& file) : WeightTable(spec, file.files()), file_(file) {}

  bool has(std::string_view module) const override { return file_.find_tensor(tensor_name(module)) != nullptr; }

  std::vector<std::string> surplus() const override {
    std::vector<std::string> names;
    for (const formats::GgufTensor& t : file_.tensors())
      if (!asked_.contains(std::string(t.name)) && t.name != "rope_freqs.weight") names.emplace_back(t.name);
    return names;
  }

 protected:
  PackedTensor find(const graph::ValueInfo& weight) override {
    const std::string name = tensor_name(weight.name);
    const formats::GgufTensor* tensor = file_.find_tensor(name);
    if (!tensor) fail(ErrorKind::corrupt_file, "{}: tensor {} is absent", spec_.file, name);
    asked_.insert(name);
    return tensor->packed();
  }

 private:
  std::string tensor_name(std::string_view module) const {
    std::string_view kind = "weight";
    if (module.ends_with(".bias")) {
      kind = "bias";
      module.remove_suffix(5);
    }
    for (const Pair& p : kTop)
      if (module == p.module) return fmt::format("{}.{}", p.tensor, kind);
    const std::string_view prefix = spec_.encoder() ? "model.encoder.layer." : "model.layers.";
    if (module.starts_with(prefix)) {
      module.remove_prefix(prefix.size());
      const size_t dot = std::min(module.find('.'), module.size());
      const std::string_view layer = module.substr(0, dot), rest = module.substr(std::min(dot + 1, module.size()));
      const auto look = [&](std::span<const Pair> table) {
        for (const Pair& p : table)
          if (rest == p.module) return p.tensor;
        return std::string_view();
      };
      std::string_view tensor = spec_.encoder() ? look(kEncoder) : look(kLayer);
      if (tensor.empty() && !spec_.encoder())
        tensor = spec_.order == LayerOrder::sandwich ? look(kSandwich) : look(kPreNorm);
      if (!tensor.empty()) return fmt::format("blk.{}.{}.{}", layer, tensor, kind);
    }
    HEARTH_CHECK(false, "module {} has no GGUF name", module);
    return {};
  }

  const formats::GgufFile& file_;
  std::set<std::string> asked_;
};

}  // namespace

std::unique_ptr<WeightTable> gguf_weights(const ModelSpec& spec, const formats::GgufFile& file) {
  return std::make_unique<GgufWeights>(spec, file);
}

}  // namespace hearth::model
