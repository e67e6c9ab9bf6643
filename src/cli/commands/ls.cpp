#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/units.h"
#include "hub/nearest.h"
#include "hub/store.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "QUERY", .help = "only names that hold this text", .required = false},
};
constexpr Flag kFlags[] = {
    {.name = "all-revisions", .help = "a row per snapshot; * marks the one the bare name means"},
    {.name = "max-size", .kind = ValueKind::size, .value = "SIZE", .help = "only models up to this size (10GB)"},
    {.name = "names", .help = "names alone, one a line"},
};

json::Object row_of(const hub::Snapshot& model, bool canonical) {
  json::Object row;
  row["repo"] = model.repo;
  row["revision"] = model.revision;
  row["canonical"] = canonical;
  row["format"] = model.format ? json::Value(name_of(*model.format)) : json::Value();
  row["size_bytes"] = model.bytes;
  row["complete"] = model.problem.empty();
  if (!model.problem.empty()) row["problem"] = model.problem;
  row["path"] = model.folder.string();
  json::Array files;
  for (const hub::SnapshotFile& file : model.files) {
    json::Object each;
    each["path"] = file.path;
    each["size_bytes"] = file.bytes;
    files.emplace_back(std::move(each));
  }
  row["files"] = std::move(files);
  return row;
}

int run(Context& context) {
  const hub::Store store = hub::Store::from_env(context.env());
  const bool all_revisions = context.args().on("all-revisions");
  const std::string query = context.args().positional("QUERY").value_or("");
  const std::optional<int64_t> max_size = context.args().bytes("max-size");

  std::vector<hub::Snapshot> models = store.list(all_revisions);
  std::erase_if(models, [&](const hub::Snapshot& model) {
    return !hub::contains_ignoring_case(model.repo, query) || (max_size && model.bytes > *max_size);
  });
  const auto is_canonical = [&](const hub::Snapshot& model) {
    if (!all_revisions || !model.format) return true;
    const std::vector<hub::Snapshot> same = hub::read_snapshots(store.cache(), model.repo);
    const hub::Snapshot* main = hub::canonical(store.cache(), same);
    return main && main->revision == model.revision;
  };

  if (context.json()) {
    json::Object document;
    document["store"] = store.cache().string();
    json::Array rows;
    for (const hub::Snapshot& model : models) rows.emplace_back(row_of(model, is_canonical(model)));
    document["models"] = std::move(rows);
    context.print_json(std::move(document));
    return 0;
  }
  if (context.args().on("names")) {
    for (const hub::Snapshot& model : models) context.print("{}\n", model.repo);
    return 0;
  }
  if (models.empty()) {
    if (query.empty() && !max_size)
      context.note("no models in {}; add one with: hearth import FILE.gguf", store.cache().string());
    else context.note("no such model in {}; hearth ls shows all", store.cache().string());
    return 0;
  }
  size_t width = 4;
  for (const hub::Snapshot& model : models) width = std::max(width, model.repo.size());
  context.print("{}\n", context.bold(fmt::format("{:<{}}  {:<8}  {:<11}  {:>7}  {:>5}  NOTE", "NAME", width, "REVISION",
                                                 "FORMAT", "SIZE", "FILES")));
  for (const hub::Snapshot& model : models) {
    if (!model.format) {
      context.print("{:<{}}  {:<8}  {:<11}  {:>7}  {:>5}  {}\n", model.repo, width, "?", "?", "?", "?",
                    context.red(printable(model.problem, kSentenceBytesMax)));
      continue;
    }
    const std::string note = model.problem.empty() ? "" : context.red("incomplete: " + model.problem);
    const std::string mark = all_revisions && is_canonical(model) ? "* " : "";
    context.print("{:<{}}  {:<8}  {:<11}  {:>7}  {:>5}  {}{}\n", model.repo, width, model.revision.substr(0, 8),
                  name_of(*model.format), show_size(model.bytes), model.files.size(), mark, note);
  }
  return 0;
}

}  // namespace

const Command kLs = {
    .name = "ls",
    .aliases = "list",
    .summary = "models in the store",
    .details =
        "The store is the standard hub cache: HF_HUB_CACHE, else HF_HOME/hub, else\n"
        "~/.cache/huggingface/hub.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
