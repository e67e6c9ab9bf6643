#include "hub/import.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/foreign_words.h"
#include "cli/progress.h"
#include "cli/units.h"
#include "hub/paths.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "PATH", .help = "a .gguf file, or a folder with config.json and *.safetensors"},
};
constexpr Flag kFlags[] = {
    {.name = "name",
     .kind = ValueKind::text,
     .value = "ORG/NAME",
     .help = "its name in the store; without it local/<file name>",
     .filled = true},
    {.name = "link",
     .help = "share the bytes of PATH by a hard link instead of copying (do not change PATH afterwards)"},
};

int run(Context& context) {
  const hub::Env& env = context.env();
  const Interrupt interrupt(Interrupt::Also::termination);
  const std::optional<std::string> name = context.args().text("name");
  const std::string path = context.required("PATH");
  if (path.empty()) fail(ErrorKind::invalid_argument, "PATH is empty");
  refuse_address(path);
  hub::ImportResult result;
  {
    Progress progress(context, "importing");
    result = hub::import_model(hub::hub_cache(env), hub::expand_home(path, env),
                               {.repo = name.value_or(""),
                                .hard_link = context.args().on("link"),
                                .cancel = &interrupt.flag(),
                                .progress = [&](int64_t done, int64_t total) { progress.show(done, total); }});
  }
  if (context.json()) {
    json::Object document;
    document["repo"] = result.repo;
    document["revision"] = result.revision;
    document["path"] = result.folder.string();
    document["format"] = name_of(result.format);
    document["files"] = result.files;
    document["size_bytes"] = result.bytes;
    document["copied_bytes"] = result.bytes_copied;
    context.print_json(std::move(document));
    return 0;
  }
  context.print("{}\n", result.repo);
  context.note("{} of {} in {} file{}; try: hearth run {}", name_of(result.format), show_size(result.bytes),
               result.files, result.files == 1 ? "" : "s", result.repo);
  return 0;
}

}  // namespace

const Command kImport = {
    .name = "import",
    .aliases = "",
    .summary = "bring a .gguf file or a model folder into the store",
    .details =
        "The headers are checked first. A copy shares its blocks with the source where\n"
        "the file system can (reflink). Interrupted at any point it leaves nothing\n"
        "half-written; importing the same files again changes nothing.",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
