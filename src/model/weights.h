// The weights of a model by module path, whatever file they lie in: MLX or hub safetensors, or GGUF.
#pragma once
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "formats/gguf.h"
#include "formats/model_dir.h"
#include "formats/safetensors.h"
#include "graph/program.h"
#include "model/spec.h"
#include "tensor/packed.h"

namespace hearth::model {

// Views into mapped files, and the few tensors that are rewritten at load (norms with the meaning 1 + w, q and k rows
// of GGUF llama files put back into head order). One thread.
class WeightTable {
 public:
  virtual ~WeightTable() = default;

  // A weight value of the forward: a matrix "model.layers.0.mlp.up_proj" [N, K] or a vector
  // "model.layers.0.input_layernorm", "....q_proj.bias" [1, K]. Checked against the value's extents.
  // Throws Error{corrupt_file}: absent ("tensor ... is absent"), another shape ("weight is [2048, 2048], config says
  // [2048, 1536]"), quantization that does not fit. Views live until release() or the table's end.
  PackedTensor get(const graph::ValueInfo& weight);

  // The same as its file holds it, without the rewriting: for sizes and formats.
  PackedTensor stored(const graph::ValueInfo& weight);

  virtual bool has(std::string_view module) const = 0;  // the file holds "<module>.weight"

  // The loader is done with this tensor: resident pages of its file, or its rewritten bytes, are given back.
  void release(const PackedTensor& tensor);

  // Names in the file that the forward did not ask for, less those that are expected (spec models 3).
  virtual std::vector<std::string> surplus() const = 0;

  // The files that the weights lie in, in the order of the parts.
  const std::vector<MappedFile>& files() const { return mapped_; }

 protected:
  WeightTable(const ModelSpec& spec, const std::vector<MappedFile>& files) : spec_(spec), mapped_(files) {}
  virtual PackedTensor find(const graph::ValueInfo& weight) = 0;  // as the file has it

  const ModelSpec& spec_;

 private:
  PackedTensor rewrite(const graph::ValueInfo& weight, PackedTensor tensor);
  const std::vector<MappedFile>& mapped_;
  std::list<std::vector<std::byte>> owned_;
};

// What the quantization table says about a module, which it may spell with any of the prefixes of spec models 4.
formats::QuantEntry quant_entry(const formats::QuantTable& table, std::string_view module);

// The tables keep references: spec and file must outlive them.
std::unique_ptr<WeightTable> gguf_weights(const ModelSpec& spec, const formats::GgufFile& file);
std::unique_ptr<WeightTable> safetensors_weights(const ModelSpec& spec, const formats::ModelDir& dir,
                                                 const formats::Safetensors& files);

}  // namespace hearth::model
