#include "formats/safetensors.h"

#include "base/error.h"
#include "base/fs.h"
#include "base/printable.h"
#include "formats/order.h"

namespace hearth::formats {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view tensor_name(const SafeTensor& t) { return t.name; }

}  // namespace

Safetensors Safetensors::open(const std::filesystem::path& file) {
  Safetensors set;
  set.path_ = file;
  set.add(file);
  set.index();
  return set;
}

Safetensors Safetensors::open_dir(const std::filesystem::path& dir) {
  Safetensors set;
  set.path_ = dir;
  const auto index_path = dir / kIndexName;
  if (io::real_fs().exists(index_path)) {
    const MappedFile text = MappedFile::open(index_path);
    const SafetensorsIndex index = parse_safetensors_index(as_text(text.bytes()), index_path.string());
    for (const std::string& file : index.files) {
      if (!io::real_fs().exists(dir / file))
        fail(ErrorKind::corrupt_file, "{}: {} is named but absent", index_path.string(), file);
      set.add(dir / file);
    }
    set.index();
    for (const auto& [tensor, file] : index.tensors) {
      const SafeTensor* found = set.find(tensor);
      if (!found || found->file != file)
        fail(ErrorKind::corrupt_file, "{}: tensor {} is not in {}", index_path.string(), printable(tensor),
             index.files[file]);
    }
    return set;
  }
  for (const io::Entry& entry : io::real_fs().list(dir))
    if (!entry.is_dir && entry.name.starts_with("model") && entry.name.ends_with(".safetensors"))
      set.add(dir / entry.name);
  if (set.files_.empty()) fail(ErrorKind::not_found, "{}: no model*.safetensors", dir.string());
  set.index();
  return set;
}

void Safetensors::add(const std::filesystem::path& file) {
  const auto number = static_cast<uint32_t>(files_.size());
  files_.push_back(MappedFile::open(file));
  SafetensorsHeader header = parse_safetensors(files_.back().bytes(), file.string());
  for (SafeTensor& t : header.tensors) {
    t.file = number;
    tensors_.push_back(std::move(t));
  }
  if (number == 0) metadata_ = std::move(header.metadata);
}

// Names are unique within a file already.
void Safetensors::index() {
  by_name_ = order_by(tensors_, tensor_name);
  if (const Repeat twice = find_repeat(tensors_, by_name_, tensor_name))
    fail(ErrorKind::corrupt_file, "tensor {} is in {} and in {}", printable(tensors_[twice.a].name),
         name_of_file(tensors_[twice.a].file), name_of_file(tensors_[twice.b].file));
}

const SafeTensor* Safetensors::find(std::string_view name) const {
  return find_by(tensors_, by_name_, tensor_name, name);
}

TensorView Safetensors::view(std::string_view name) const {
  const SafeTensor* tensor = find(name);
  if (!tensor) fail(ErrorKind::corrupt_file, "{}: tensor {} is absent", path_.string(), printable(name));
  return view(*tensor);
}

TensorView Safetensors::view(const SafeTensor& tensor) const {
  if (!tensor.dtype)
    fail(ErrorKind::invalid_argument,
         "{}: tensor {} has dtype {}; supported are F64 F32 F16 BF16 I64 I32 U32 I8 U8 BOOL", name_of_file(tensor.file),
         printable(tensor.name), tensor.dtype_name);
  return {*tensor.dtype, tensor.shape, tensor.data};
}

}  // namespace hearth::formats
