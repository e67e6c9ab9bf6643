#include "cli/deep_check.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/digest.h"
#include "base/error.h"
#include "base/team.h"
#include "cli/engine_flags.h"
#include "cli/progress.h"
#include "cli/units.h"
#include "cpu/pack_cache.h"
#include "decode/memory.h"
#include "model/forward.h"

namespace hearth::cli {
namespace {
namespace fs = std::filesystem;

// Blobs of the hub cache are named by the SHA-256 of their bytes; those named by a git SHA-1 (40 digits) are small.
bool is_sha256(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Finding check_digests(const Context& context, const hub::FoundModel& found) {
  std::vector<fs::path> files;
  if (fs::is_directory(found.path)) {
    for (const auto& entry : fs::recursive_directory_iterator(found.path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  } else {
    files.push_back(found.path);
  }
  std::sort(files.begin(), files.end());
  int64_t checked = 0;
  Progress progress(context, "digests of " + found.name, Progress::Unit::count);
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path blob = fs::canonical(files[i]);
    progress.show(static_cast<int64_t>(i), static_cast<int64_t>(files.size()));
    if (!is_sha256(blob.filename().string())) continue;
    if (const std::string digest = sha256_file(blob); digest != blob.filename().string())
      return {"digests", Health::fail,
              fmt::format("{}: {} is damaged: its SHA-256 is {}", found.name, blob.string(), digest),
              "remove that file and import or fetch the model again"};
    ++checked;
  }
  return {"digests", Health::ok,
          checked > 0 ? fmt::format("{}: {} file{} as named", found.name, checked, checked == 1 ? "" : "s")
                      : fmt::format("{}: no file is named by its SHA-256", found.name)};
}

Finding check_values(const Context& context, const hub::FoundModel& found, model::Model& model,
                     const graph::Program& program) {
  constexpr size_t kShown = 20;
  Progress progress(context, "weights of " + found.name, Progress::Unit::count);
  int64_t bad = 0;
  std::vector<std::string> names;
  json::Array rows;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const graph::ValueInfo& value = program.value(program.weights[i]);
    const PackedTensor stored = model.weights().stored(value);
    if (const int64_t count = count_nonfinite(stored); count > 0) {
      bad += count;
      names.push_back(fmt::format("{} ({})", value.name, count));
      json::Object row;
      row["weight"] = value.name;
      row["format"] = name_of(stored.format);
      row["count"] = count;
      rows.emplace_back(std::move(row));
    }
    model.weights().release(stored);
    progress.show(static_cast<int64_t>(i), static_cast<int64_t>(program.weights.size()));
  }
  if (names.empty())
    return {"weights", Health::ok,
            fmt::format("{}: no NaN or infinite scale or value in {} weights", found.name, program.weights.size())};
  const size_t shown = std::min(names.size(), kShown);
  Finding finding{"weights", Health::fail,
                  fmt::format("{}: {} scales or values in {} of {} weights are NaN or infinite: {}{}", found.name, bad,
                              names.size(), program.weights.size(),
                              fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "),
                              names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : ""),
                  "the file is damaged or was converted wrongly: get it again"};
  finding.details["weights"] = std::move(rows);
  return finding;
}

Finding check_packed(const Context& context, const hub::FoundModel& found, model::Model& model,
                     const graph::Program& program) {
  const std::optional<cpu::PackCacheOptions> options = pack_cache_options(context, model);
  if (!options) return {"packed", Health::ok, fmt::format("{}: repacked weights are not kept", found.name)};
  cpu::PackCache cache(*options);
  Team team(cpus_allowed());
  Progress progress(context, "packed weights of " + found.name, Progress::Unit::count);
  const std::vector<graph::LayoutHint> hints = decode::layout_hints(program);
  int64_t same = 0, absent = 0, differ = 0;
  for (size_t i = 0; i < hints.size(); ++i) {
    if (hints[i] == graph::LayoutHint::vector || hints[i] == graph::LayoutHint::gather) continue;
    const graph::ValueInfo& value = program.value(program.weights[i]);
    const PackedTensor tensor = model.weights().get(value);
    if (const auto kept = cache.find(value.name, tensor, &team)) {
      const auto fresh = cpu::Matrix::pack(tensor, &team);
      const bool equal = std::ranges::equal(kept->matrix.bytes(), fresh.bytes());
      (equal ? same : differ) += 1;
    } else {
      ++absent;
    }
    model.weights().release(tensor);
    progress.show(static_cast<int64_t>(i), static_cast<int64_t>(hints.size()));
  }
  if (differ == 0 && (absent == 0 || same == 0))
    return {"packed", Health::ok,
            same > 0 ? fmt::format("{}: {} matrices as a fresh repack gives them", found.name, same)
                     : fmt::format("{}: no repacked weights are kept", found.name)};
  return {"packed", Health::warn,
          fmt::format("{}: of {} matrices in {}, {} differ from a fresh repack and {} are absent or damaged",
                      found.name, same + differ + absent, cache.path().string(), differ, absent),
          "remove that file: the next load makes it anew"};
}

}  // namespace

std::vector<Finding> deep_check(const Context& context, const hub::FoundModel& found) {
  std::vector<Finding> findings;
  const auto add = [&](const char* what, const auto& check) {
    try {
      findings.push_back(check());
      return true;
    } catch (const Error& error) {
      findings.push_back({what, Health::fail, error.what(), "get the model again"});
    } catch (const fs::filesystem_error& error) {
      findings.push_back({what, Health::fail, error.what(), "see the sentence"});
    }
    return false;
  };
  std::unique_ptr<model::Model> model;
  const bool opened = add("model", [&]() -> Finding {
    model = model::Model::open(found.path);
    return {"model", Health::ok, fmt::format("{}: {} of {}", found.name, model->format(), model->spec().model_type)};
  });
  add("digests", [&] { return check_digests(context, found); });
  if (!opened) return findings;
  const graph::Program program = model->spec().encoder()
                                     ? model::embedding_forward(model->spec(), {})
                                     : model::forward(model->spec(), {.activation = DType::f32, .kv = {}});
  add("weights", [&] { return check_values(context, found, *model, program); });
  add("packed", [&] { return check_packed(context, found, *model, program); });
  return findings;
}

}  // namespace hearth::cli
