// tool_formats: the readers of tensor and formats behind a command line, for the oracle tests in Python.
//   decode CODEC K [BITS GROUP SCALE_TYPE]   stdin: rows (affine: data, scales, biases of one row each time); stdout:
//   f32 gguf FILE                                JSON of metadata and tensor table gguf-tensor FILE NAME stdout: the
//   tensor's values, f32
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "formats/gguf.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "tensor/affine_quantizer.h"
#include "tensor/packed.h"

namespace {

using namespace hearth;

std::vector<std::byte> read_stdin() {
  std::vector<std::byte> all(1 << 16);
  size_t size = 0;
  for (;;) {
    if (size == all.size()) all.resize(2 * size);
    const size_t n = std::fread(all.data() + size, 1, all.size() - size, stdin);
    if (n == 0) break;
    size += n;
  }
  all.resize(size);
  return all;
}

void write_rows(const PackedTensor& w) {
  std::vector<float> row(static_cast<size_t>(w.K));
  for (int64_t n = 0; n < w.N; ++n) {
    decode_row(w, n, row);
    std::fwrite(row.data(), sizeof(float), row.size(), stdout);
  }
}

PackedFormat format_of(const std::vector<std::string>& args) {
  PackedFormat format;
  for (int codec = 0; codec <= static_cast<int>(Codec::mxfp4); ++codec) {
    format.codec = static_cast<Codec>(codec);
    if (format.codec == Codec::affine && args[1] == "affine") {
      format.bits = std::stoi(args.at(3));
      format.group = std::stoi(args.at(4));
      format.scale_type = args.at(5) == "f16" ? DType::f16 : args[5] == "bf16" ? DType::bf16 : DType::f32;
      return format;
    }
    if (format.codec != Codec::affine && name_of(format) == args[1]) return format;
  }
  fail(ErrorKind::invalid_argument, "unknown codec {}", args[1]);
}

void decode(const std::vector<std::string>& args) {
  const std::vector<std::byte> input = read_stdin();
  PackedTensor w{
      .format = format_of(args), .N = 0, .K = std::stoll(args.at(2)), .data = {}, .scales = {}, .biases = {}};
  const bool affine = w.format.codec == Codec::affine;
  const auto row = static_cast<size_t>(row_bytes(w.format, w.K));
  const size_t scales = affine ? static_cast<size_t>(w.K / w.format.group) * size_of(w.format.scale_type) : 0;
  const size_t rows = input.size() / (row + 2 * scales);
  const std::span<const std::byte> all(input);
  w.N = static_cast<int64_t>(rows);
  w.data = all.first(rows * row);
  w.scales = all.subspan(rows * row, rows * scales);
  w.biases = all.subspan(rows * (row + scales));
  validate(w, "stdin");
  write_rows(w);
}

void quantize(const std::vector<std::string>& args) {
  const std::vector<std::byte> input = read_stdin();
  std::vector<float> w(input.size() / 4);
  std::memcpy(w.data(), input.data(), 4 * w.size());
  const int64_t K = std::stoll(args.at(1));
  const PackedFormat format = format_of({"", "affine", "", args.at(2), args.at(3), args.at(4)});
  const AffineTensor out = quantize_affine(w, static_cast<int64_t>(w.size()) / K, K, format);
  for (const auto* part : {&out.data, &out.scales, &out.biases}) std::fwrite(part->data(), 1, part->size(), stdout);
}

json::Value value_of(const formats::GgufFile& file, const formats::GgufValue& v) {
  using formats::GgufType;
  switch (v.type) {
    case GgufType::string: return std::string(*file.string(v.key));
    case GgufType::boolean: return *file.boolean(v.key);
    case GgufType::f32:
    case GgufType::f64: return *file.number(v.key);
    case GgufType::array: {
      const formats::GgufArray a = *file.array(v.key);
      json::Array out;
      if (a.holds_strings())
        for (const std::string_view s : a.strings()) out.push_back(std::string(s));
      else
        for (size_t i = 0; i < a.size(); ++i) {
          if (a.holds_integers()) out.push_back(a.integer(i));
          else if (a.holds_numbers()) out.push_back(a.number(i));
          else out.push_back(a.bytes[i] == std::byte{1});
        }
      return out;
    }
    default: return *file.integer(v.key);
  }
}

void gguf(const std::vector<std::string>& args) {
  const auto file = formats::GgufFile::open(args.at(1));
  json::Object metadata, tensors;
  for (const formats::GgufValue& v : file.values()) metadata[v.key] = value_of(file, v);
  for (const formats::GgufTensor& t : file.tensors()) {
    json::Array shape;
    for (const int64_t d : t.shape()) shape.push_back(d);
    json::Object entry;
    entry["type"] = name_of(t.format);
    entry["shape"] = std::move(shape);
    entry["bytes"] = static_cast<int64_t>(t.data.size());
    tensors[t.name] = std::move(entry);
  }
  json::Object all;
  all["version"] = file.version();
  all["metadata"] = std::move(metadata);
  all["tensors"] = std::move(tensors);
  std::fputs(json::dump(all).c_str(), stdout);
}

void gguf_tensor(const std::vector<std::string>& args) {
  const auto file = formats::GgufFile::open(args.at(1));
  const formats::GgufTensor* t = file.find_tensor(args.at(2));
  if (!t) fail(ErrorKind::not_found, "{}: no tensor {}", args[1], args[2]);
  write_rows(t->packed());
}

formats::Safetensors open_safetensors(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? formats::Safetensors::open_dir(path) : formats::Safetensors::open(path);
}

void safetensors(const std::vector<std::string>& args) {
  const formats::Safetensors file = open_safetensors(args.at(1));
  json::Object tensors, all;
  for (const formats::SafeTensor& t : file.tensors()) {
    json::Object entry;
    entry["dtype"] = t.dtype_name;
    const auto dims = t.shape.dims();
    entry["shape"] = json::Array(dims.begin(), dims.end());
    tensors[t.name] = std::move(entry);
  }
  json::Object metadata;
  for (const auto& [key, value] : file.metadata()) metadata[key] = value;
  all["metadata"] = std::move(metadata);
  all["tensors"] = std::move(tensors);
  std::fputs(json::dump(all).c_str(), stdout);
}

void safetensors_tensor(const std::vector<std::string>& args) {
  const formats::Safetensors file = open_safetensors(args.at(1));
  const TensorView view = file.view(args.at(2));
  std::vector<float> values(static_cast<size_t>(view.shape.size()));
  copy_f32(view, values);
  std::fwrite(values.data(), sizeof(float), values.size(), stdout);
}

void npy(const std::vector<std::string>& args) {
  const std::vector<std::byte> input = read_stdin();
  std::vector<float> values(input.size() / 4);
  std::memcpy(values.data(), input.data(), 4 * values.size());
  formats::write_npy(io::real_fs(), args.at(1), values, std::stoll(args.at(2)), std::stoll(args.at(3)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.empty())
      fail(ErrorKind::invalid_argument,
           "usage: tool_formats decode|quantize|gguf|gguf-tensor|safetensors|safetensors-tensor|npy ...");
    if (args[0] == "decode") decode(args);
    else if (args[0] == "quantize") quantize(args);
    else if (args[0] == "gguf") gguf(args);
    else if (args[0] == "safetensors") safetensors(args);
    else if (args[0] == "safetensors-tensor") safetensors_tensor(args);
    else if (args[0] == "npy") npy(args);
    else if (args[0] == "gguf-tensor") gguf_tensor(args);
    else fail(ErrorKind::invalid_argument, "unknown command {}", args[0]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
