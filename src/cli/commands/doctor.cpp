#include <fstream>
#include <sstream>

#include "base/cgroup.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/deep_check.h"
#include "cli/engine_flags.h"
#include "cli/machine.h"
#include "cli/settings.h"
#include "cli/units.h"
#include "cli/version.h"
#include "cpu/isa.h"
#include "cpu/pack_folder.h"
#include "hub/import.h"
#include "hub/publish.h"
#include "hub/store.h"

namespace hearth::cli {
namespace {
namespace fs = std::filesystem;

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store; with --deep", .required = false},
};
constexpr Flag kFlags[] = {
    {.name = "deep", .help = "reads whole models: digests, NaN and infinite scales, packed weights"},
    kPackCacheFlag,
};

std::string_view name_of(Health health) {
  return health == Health::ok ? "ok" : health == Health::warn ? "warn" : "fail";
}

Finding check_cpu() {
  const CpuInfo info = cpu_info();
  const std::string cpus = info.allowed == info.online
                               ? fmt::format("{} CPUs", info.online)
                               : fmt::format("{} of {} CPUs allowed", info.allowed, info.online);
  return {"cpu", Health::ok, fmt::format("{}, {}", info.model.empty() ? "unknown model" : info.model, cpus), ""};
}

Finding check_kernels() {
  std::vector<std::string_view> names;
  for (const cpu::Isa isa : cpu::available_isas()) names.push_back(cpu::name_of(isa));
  try {
    const cpu::Isa best = cpu::best_isa();
    Finding finding{"kernels", Health::ok, fmt::format("{} (of {})", cpu::name_of(best), fmt::join(names, ", ")), ""};
    if (best == cpu::Isa::generic) {
      finding.health = Health::warn;
      finding.fix = names.size() > 1 ? "HEARTH_ISA forces the slow portable kernels: unset it"
                                     : "this CPU has no AVX2: answers will be slow";
    }
    return finding;
  } catch (const Error& error) {
    return {"kernels", Health::fail, error.what(), "unset HEARTH_ISA"};
  }
}

Finding check_memory() {
  const MemoryInfo info = memory_info();
  Finding finding{"memory", Health::ok,
                  fmt::format("{} available of {}, swap {}", show_size(info.available), show_size(info.total),
                              info.swap_total == 0 ? "none" : show_size(info.swap_total)),
                  ""};
  if (info.available < int64_t{1'000'000'000}) {
    finding.health = Health::warn;
    finding.fix = "less than 1 GB is available: close other programs or choose a small model";
  }
  return finding;
}

Finding check_cgroup() {
  const std::optional<int64_t> limit = cgroup_memory_limit();
  if (!limit) return {"cgroup", Health::ok, "no memory limit", ""};
  Finding finding{"cgroup", Health::ok, fmt::format("memory limit {}", show_size(*limit)), ""};
  if (*limit < int64_t{1'000'000'000}) {
    finding.health = Health::warn;
    finding.fix = "raise the memory limit of the container or service";
  }
  return finding;
}

Finding check_huge_pages() {
  std::ostringstream text;
  text << std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").rdbuf();
  const std::string mode = chosen_word(text.str());
  if (mode.empty()) return {"huge pages", Health::ok, "not offered by this kernel", ""};
  if (mode == "never")
    return {"huge pages", Health::warn, "transparent huge pages are off",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) makes decoding faster"};
  return {"huge pages", Health::ok, fmt::format("transparent, {}", mode), ""};
}

Finding check_gpu() { return {"gpu", Health::ok, "CUDA is not part of this build", ""}; }

// Write, sync and rename in the folder, or in the nearest one above it that exists: nothing is created for the check.
Finding probe_writes(const std::string& what, const fs::path& folder) {
  fs::path existing = fs::absolute(folder);
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  const fs::path probe = existing / ".hearth-doctor-probe";
  try {
    io::write_file_atomic(io::real_fs(), probe, "probe");
    io::real_fs().remove(probe);
    return {what, Health::ok, fmt::format("{} can be written", folder.string()), ""};
  } catch (const Error& error) {
    io::real_fs().remove(probe);
    return {what, Health::fail, error.what(),
            fmt::format("make {} writable, or choose another folder", existing.string())};
  }
}

Finding check_disk(const fs::path& cache) {
  fs::path existing = fs::absolute(cache);
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  const int64_t free = hub::bytes_free(cache);
  const std::string type = filesystem_type(existing);
  Finding finding{"disk", Health::ok, fmt::format("{} free for models ({})", show_size(free), type), ""};
  if (free < int64_t{2'000'000'000}) {
    finding.health = Health::warn;
    finding.fix = "make room, or set HF_HUB_CACHE to a folder on a larger disk";
  }
  return finding;
}

Finding check_store(const hub::Store& store) {
  int64_t bytes = 0, incomplete = 0, unreadable = 0;
  const std::vector<hub::Snapshot> models = store.list();
  for (const hub::Snapshot& model : models) {
    bytes += model.bytes;
    if (!model.format) ++unreadable;
    else if (!model.problem.empty()) ++incomplete;
  }
  Finding finding{"models", Health::ok,
                  fmt::format("{} model{} of {} in {}", models.size(), models.size() == 1 ? "" : "s", show_size(bytes),
                              store.cache().string()),
                  ""};
  if (incomplete > 0) {
    finding.health = Health::warn;
    finding.text += fmt::format(", {} incomplete", incomplete);
    finding.fix = "hearth ls names them; import them again";
  }
  if (unreadable > 0) {
    finding.health = Health::warn;
    finding.text += fmt::format(", {} unreadable", unreadable);
    finding.fix = "hearth ls names them with the reason";
  }
  return finding;
}

Finding check_stale(const fs::path& cache) {
  const int64_t count = hub::stale_files(cache, hub::Stale::count);
  if (count == 0) return {"stale files", Health::ok, "none", ""};
  return {"stale files", Health::warn,
          fmt::format("{} temporary file{} of dead processes", count, count == 1 ? "" : "s"),
          "the next hearth import removes them"};
}

// Repacked weights: how much of the disk they take, and what killed processes left.
Finding check_packed(const Context& context) {
  const fs::path folder = packed_folder(context.env());
  const int64_t room = *context.args().bytes("pack-cache");
  int64_t files = 0, bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file() && entry.path().extension() == cpu::kPackedSuffix) {
      ++files;
      bytes += static_cast<int64_t>(entry.file_size());
    }
  const int64_t stale = cpu::count_leftovers(io::real_fs(), folder);
  Finding finding{"packed", Health::ok,
                  fmt::format("repacked weights of {} model{}, {} of the {} of --pack-cache", files,
                              files == 1 ? "" : "s", show_size(bytes), show_size(room))};
  if (stale > 0) {
    finding.health = Health::warn;
    finding.text += fmt::format("; {} temporary file{} of dead processes", stale, stale == 1 ? "" : "s");
    finding.fix = "the next load that repacks a model removes them";
  }
  return finding;
}

Finding check_settings(const hub::Env& env) {
  try {
    const Settings settings = load_settings(working_folder(), env);
    std::vector<std::string> unknown = unknown_settings(settings.project);
    for (std::string& sentence : unknown_settings(settings.user)) unknown.push_back(std::move(sentence));
    if (unknown.empty()) return {"settings", Health::ok, "hearth.toml and config.toml are sound or absent", ""};
    return {"settings", Health::warn, fmt::format("{}", fmt::join(unknown, "; ")), "correct the names"};
  } catch (const Error& error) {
    return {"settings", Health::fail, error.what(), "correct that line"};
  }
}

Finding check_clock() {
  const std::time_t now = std::time(nullptr);
  constexpr std::time_t kEarliest = 1'750'000'000;  // the middle of 2025, before this program
  if (now < kEarliest) return {"clock", Health::warn, "the clock stands in the past", "set the time (timedatectl)"};
  return {"clock", Health::ok, "set", ""};
}

template <class Check>
void add(std::vector<Finding>& findings, const char* what, const Check& check) {
  try {
    findings.push_back(check());
  } catch (const Error& error) {
    findings.push_back({what, Health::fail, error.what(), "see the sentence"});
  }
}

// --deep: MODEL, or every one in the store.
void add_deep(const Context& context, std::vector<Finding>& findings) {
  const hub::Store store = hub::Store::from_env(context.env());
  std::vector<hub::FoundModel> models;
  if (const auto name = context.args().positional("MODEL")) {
    models.push_back(store.find(*name));
  } else {
    for (const hub::Snapshot& model : store.list()) {
      try {
        models.push_back(store.find(model.repo));
      } catch (const Error& error) {
        findings.push_back({"model", Health::fail, error.what(), "see the sentence"});
      }
    }
  }
  for (const hub::FoundModel& model : models)
    for (Finding& finding : deep_check(context, model)) findings.push_back(std::move(finding));
}

int run(Context& context) {
  const hub::Env& env = context.env();
  const bool deep = context.args().on("deep");
  if (context.args().positional("MODEL") && !deep)
    fail(ErrorKind::invalid_argument, "doctor reads a MODEL only with --deep: hearth doctor {} --deep",
         *context.args().positional("MODEL"));
  std::vector<Finding> findings;
  findings.push_back({"version", Health::ok,
                      fmt::format("hearth {} ({}, {}, {})", kVersionText, commit(), build_type(), compiler()), ""});
  add(findings, "cpu", check_cpu);
  add(findings, "kernels", check_kernels);
  add(findings, "memory", check_memory);
  add(findings, "cgroup", check_cgroup);
  add(findings, "huge pages", check_huge_pages);
  add(findings, "gpu", check_gpu);
  add(findings, "disk", [&] { return check_disk(hub::hub_cache(env)); });
  add(findings, "store", [&] { return probe_writes("store", hub::hub_cache(env)); });
  add(findings, "state", [&] { return probe_writes("state", hub::state_folder(env)); });
  add(findings, "cache", [&] { return probe_writes("cache", hub::cache_folder(env)); });
  add(findings, "models", [&] { return check_store(hub::Store::from_env(env)); });
  add(findings, "stale files", [&] { return check_stale(hub::hub_cache(env)); });
  add(findings, "packed", [&] { return check_packed(context); });
  add(findings, "settings", [&] { return check_settings(env); });
  add(findings, "clock", check_clock);
  if (deep) add_deep(context, findings);

  bool failed = false;
  json::Array rows;
  for (const Finding& finding : findings) {
    failed |= finding.health == Health::fail;
    if (context.json()) {
      json::Object row;
      row["check"] = finding.what;
      row["health"] = name_of(finding.health);
      row["text"] = finding.text;
      if (!finding.fix.empty()) row["fix"] = finding.fix;
      for (const auto& [name, value] : finding.details) row[name] = value;
      rows.emplace_back(std::move(row));
      continue;
    }
    const std::string mark = fmt::format("{:<4}", name_of(finding.health));
    context.print("{}  {:<11}  {}\n",
                  finding.health == Health::ok     ? context.green(mark)
                  : finding.health == Health::warn ? context.yellow(mark)
                                                   : context.red(mark),
                  finding.what, printable(finding.text, kSentenceBytesMax));
    if (!finding.fix.empty()) context.print("{:>19}{}\n", "", printable(finding.fix, kSentenceBytesMax));
  }
  if (context.json()) {
    json::Object document;
    document["healthy"] = !failed;
    document["checks"] = std::move(rows);
    context.print_json(std::move(document));
  }
  return failed ? 1 : 0;
}

}  // namespace

const Command kDoctor = {
    .name = "doctor",
    .aliases = "",
    .summary = "checks this machine and the store; each line with its fix",
    .details =
        "--deep also reads the model's files, or those of every model in the store, from\n"
        "end to end: digests, NaN and infinite scales, packed weights.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .settings = false,
};

}  // namespace hearth::cli
