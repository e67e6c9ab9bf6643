#include "formats/adapter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "base/fs.h"
#include "base/mmap.h"
#include "formats/adapter_config.h"
#include "formats/byte_reader.h"
#include "formats/config.h"
#include "formats/safetensors.h"

namespace hearth::formats {
namespace {

// Spec models 4; the longer ones first.
constexpr std::array<std::string_view, 5> kPrefixes = {"language_model.model.", "model.language_model.",
                                                       "language_model.", "model.", "bert."};

std::string_view without_prefix(std::string_view module) {
  constexpr std::string_view kPeft = "base_model.model.";
  if (module.starts_with(kPeft)) module.remove_prefix(kPeft.size());
  for (const std::string_view prefix : kPrefixes)
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  return module;
}

struct Part {
  std::string_view module;  // as the file spells it
  bool second = false;      // B
  bool peft = false;        // stored as [N, R] and [R, K]
};

std::optional<Part> part_of(std::string_view name) {
  struct Ending {
    std::string_view text;
    bool second, peft;
  };
  constexpr Ending kEndings[] = {{".lora_a", false, false},
                                 {".lora_b", true, false},
                                 {".lora_A.weight", false, true},
                                 {".lora_B.weight", true, true},
                                 {".lora_A.default.weight", false, true},
                                 {".lora_B.default.weight", true, true}};
  for (const Ending& e : kEndings)
    if (name.ends_with(e.text)) return Part{name.substr(0, name.size() - e.text.size()), e.second, e.peft};
  return std::nullopt;
}

// A linear of the base and the tensors for it.
struct Pair {
  const SafeTensor *a = nullptr, *b = nullptr;
  Part a_part, b_part;
};

class Reader {
 public:
  Reader(const AdapterFiles& files, std::span<const AdapterLinear> base)
      : what_(files.weights_name), config_name_(files.config_name), base_(base) {
    for (size_t i = 0; i < base.size(); ++i) modules_.emplace(without_prefix(base[i].module), i);
    pairs_.resize(base.size());
  }

  void add(const SafeTensor& tensor) {
    const std::optional<Part> part = part_of(tensor.name);
    if (!part) refuse(tensor);
    const auto found = modules_.find(without_prefix(part->module));
    if (found == modules_.end())
      fail(ErrorKind::invalid_argument, "{}: tensor {} is for a linear that the model does not have", what_,
           printable(tensor.name));
    Pair& pair = pairs_[found->second];
    const SafeTensor*& place = part->second ? pair.b : pair.a;
    if (place)
      fail(ErrorKind::corrupt_file, "{}: {} and {} are the same factor", what_, printable(place->name),
           printable(tensor.name));
    place = &tensor;
    (part->second ? pair.b_part : pair.a_part) = *part;
  }

  // All shapes before the first value is copied.
  std::vector<AdapterFactors> finish(const AdapterConfig& config) const {
    std::vector<AdapterFactors> list;
    for (size_t i = 0; i < pairs_.size(); ++i)
      if (pairs_[i].a || pairs_[i].b) list.push_back(shaped(pairs_[i], base_[i], config));
    if (list.empty()) fail(ErrorKind::corrupt_file, "{}: no factors, an adapter has lora_a and lora_b", what_);
    auto next = list.begin();
    for (const Pair& pair : pairs_) {
      if (!pair.a) continue;
      next->a = values(*pair.a, pair.a_part.peft, next->K, next->R);
      next->b = values(*pair.b, pair.b_part.peft, next->R, next->N);
      ++next;
    }
    return list;
  }

 private:
  [[noreturn]] void refuse(const SafeTensor& tensor) const {
    const auto is = [&](std::string_view text) { return tensor.name.find(text) != std::string::npos; };
    const char* why = tensor.name.ends_with(".m") || is("lora_magnitude_vector") ? "DoRA is not supported"
                      : is("lora_embedding") ? "adapted embeddings are not supported"
                                             : "it is no factor of a linear";
    fail(ErrorKind::invalid_argument, "{}: tensor {}: {}", what_, printable(tensor.name), why);
  }

  AdapterFactors shaped(const Pair& pair, const AdapterLinear& base, const AdapterConfig& config) const {
    if (!pair.a || !pair.b)
      fail(ErrorKind::corrupt_file, "{}: {} has no {}", what_, printable((pair.a ? pair.a : pair.b)->name),
           pair.a ? "second factor" : "first factor");
    AdapterFactors f{.module = base.module, .K = base.K, .R = 0, .N = base.N, .scale = 1, .a = {}, .b = {}};
    f.R = rank_of(*pair.a, pair.a_part, base.K, base);
    const int64_t other = rank_of(*pair.b, pair.b_part, base.N, base);
    if (f.R != other)
      fail(ErrorKind::corrupt_file, "{}: {} has rank {}, {} has rank {}", what_, printable(pair.a->name), f.R,
           printable(pair.b->name), other);
    f.scale = config.scale_of(pair.a_part.module, f.R, config_name_);
    if (!std::isfinite(f.scale))
      fail(ErrorKind::corrupt_file, "{}: the scale of {} is {}", config_name_, base.module, f.scale);
    return f;
  }

  // The rank of one factor; `wide` is its other extent. lora_a [K, R], lora_b [R, N], PEFT's transposed.
  int64_t rank_of(const SafeTensor& t, const Part& part, int64_t wide, const AdapterLinear& base) const {
    const bool rank_first = part.second != part.peft;
    if (t.shape.rank() != 2 || t.shape[rank_first ? 1 : 0] != wide)
      fail(ErrorKind::invalid_argument, "{}: {} is {}, {} [{}, {}] of the model needs {}", what_, printable(t.name),
           to_string(t.shape), base.module, base.N, base.K,
           rank_first ? fmt::format("[R, {}]", wide) : fmt::format("[{}, R]", wide));
    const int64_t R = t.shape[rank_first ? 0 : 1];
    if (R < 1 || R > kAdapterRankMax)
      fail(ErrorKind::invalid_argument, "{}: {} has rank {}, supported are 1 to {}", what_, printable(t.name), R,
           kAdapterRankMax);
    if (!t.dtype || (*t.dtype != DType::f32 && *t.dtype != DType::f16 && *t.dtype != DType::bf16))
      fail(ErrorKind::invalid_argument, "{}: {} has dtype {}; supported are F32 F16 BF16", what_, printable(t.name),
           t.dtype_name);
    return R;
  }

  // [rows, cols] as fp32, from a file that may hold [cols, rows].
  std::vector<float> values(const SafeTensor& t, bool transposed, int64_t rows, int64_t cols) const {
    const TensorView view{*t.dtype, t.shape, t.data};
    std::vector<float> stored(static_cast<size_t>(rows * cols));
    copy_f32(view, stored);
    const auto bad = std::ranges::find_if(stored, [](float v) { return !std::isfinite(v); });
    if (bad != stored.end())
      fail(ErrorKind::corrupt_file, "{}: value {} of {} is {}", what_, bad - stored.begin(), printable(t.name), *bad);
    if (!transposed) return stored;
    std::vector<float> turned(stored.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        turned[static_cast<size_t>(i * cols + j)] = stored[static_cast<size_t>(j * rows + i)];
    return turned;
  }

  const std::string &what_, &config_name_;
  std::span<const AdapterLinear> base_;
  std::map<std::string_view, size_t> modules_;  // without prefix -> index into base
  std::vector<Pair> pairs_;
};

std::filesystem::path first_of(const std::filesystem::path& dir, std::span<const char* const> names) {
  for (const char* name : names)
    if (io::real_fs().exists(dir / name)) return dir / name;
  fail(ErrorKind::not_found, "{}: no adapter there, {} is absent", dir.string(), names.front());
}

}  // namespace

int64_t Adapter::rank_max() const {
  int64_t most = 0;
  for (const AdapterFactors& f : linears) most = std::max(most, f.R);
  return most;
}

int64_t Adapter::values() const {
  int64_t sum = 0;
  for (const AdapterFactors& f : linears) sum += f.R * (f.K + f.N);
  return sum;
}

void check_adapter_id(std::string_view id) {
  if (id.empty() || id == "none" || id == "." || id == "..")
    fail(ErrorKind::invalid_argument, "an adapter cannot be named \"{}\"", id);
  for (const char c : id)
    if (std::string_view("+,/:").find(c) != std::string_view::npos || static_cast<unsigned char>(c) < 32 || c == 127)
      fail(ErrorKind::invalid_argument, "adapter \"{}\": ids have no + , / : and no control characters", printable(id));
}

Adapter parse_adapter(const AdapterFiles& files, std::span<const AdapterLinear> base) {
  const AdapterConfig config = parse_adapter_config(files.config, files.config_name);
  const SafetensorsHeader header = parse_safetensors(files.weights, files.weights_name);
  Reader reader(files, base);
  for (const SafeTensor& tensor : header.tensors) reader.add(tensor);
  return {.id = {}, .base = config.base, .revision = config.revision, .linears = reader.finish(config)};
}

std::string base_mismatch(const Adapter& adapter, std::string_view repo, std::string_view revision) {
  const bool names_repo = std::ranges::count(adapter.base, '/') == 1 && !adapter.base.starts_with('/');
  if (names_repo && !repo.empty() && adapter.base != repo)
    return fmt::format("adapter {} was trained on {}, the model is {}", adapter.id, printable(adapter.base), repo);
  const bool commits = !adapter.revision.empty() && adapter.revision != "main" && !revision.empty();
  if (names_repo && !repo.empty() && commits && adapter.revision != revision)
    return fmt::format("adapter {} was trained on revision {} of {}, the model is revision {}", adapter.id,
                       printable(adapter.revision), repo, revision);
  return {};
}

std::string adapter_id_of(const std::filesystem::path& dir) {
  const std::filesystem::path whole = std::filesystem::absolute(dir).lexically_normal();
  std::string id = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  check_adapter_id(id);
  return id;
}

Adapter read_adapter(const std::filesystem::path& dir, std::span<const AdapterLinear> base) {
  const std::string id = adapter_id_of(dir);
  if (!io::real_fs().exists(dir)) fail(ErrorKind::not_found, "{}: no such folder", dir.string());
  const std::filesystem::path weights = first_of(dir, kAdapterWeightFiles);
  const std::filesystem::path config = first_of(dir, kAdapterConfigFiles);
  const std::string text = io::real_fs().read_file(config, kConfigBytesMax);
  const MappedFile mapped = MappedFile::open(weights);
  Adapter adapter = parse_adapter(
      {.config = text, .weights = mapped.bytes(), .config_name = config.string(), .weights_name = weights.string()},
      base);
  adapter.id = id;
  return adapter;
}

}  // namespace hearth::formats
