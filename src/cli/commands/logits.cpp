#include "base/error.h"
#include "base/fs.h"
#include "cli/commands.h"
#include "cli/end_at_once.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "decode/generate.h"
#include "formats/npy.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "ids", .kind = ValueKind::text, .value = "IDS", .help = "token ids: 1,2,3 or @FILE"},
    Flag{.name = "out", .kind = ValueKind::file, .value = "FILE.npy", .help = "float32 [T, V]", .aliases = "-o"},
};
constexpr auto kFlags = joined(kOwnFlags, kModelFlags);

int run(Context& context) {
  const auto ids_text = context.args().text("ids"), out = context.args().text("out");
  if (!ids_text || !out) fail(ErrorKind::invalid_argument, "logits needs --ids IDS and --out FILE.npy");
  const std::vector<int32_t> ids = parse_ids(*ids_text, "--ids");
  const LoadedModel loaded = load_model(
      context, {.gathered_max = 64, .needs_text = false, .context_wanted = static_cast<int64_t>(ids.size())});
  const int64_t T = static_cast<int64_t>(ids.size()), V = loaded.engine->spec().V;
  const std::filesystem::path target = hub::expand_home(*out, context.env());
  for (const MappedFile& file : loaded.engine->model().weights().files())
    if (std::error_code absent; std::filesystem::equivalent(file.path(), target, absent))
      fail(ErrorKind::invalid_argument, "--out {} is a file of the model itself", *out);
  std::optional<formats::NpyWriter> writer;
  EndAtOnce end(fmt::format("interrupted; {} is not written", *out), [&] { writer.reset(); });
  end.apart([&] { writer.emplace(io::real_fs(), target, T, V); });
  decode::evaluate(*loaded.engine, ids,
                   [&](int64_t, std::span<const float> logits) { end.apart([&] { writer->write(logits); }); });
  end.last([&] { writer->commit(); });
  if (context.json()) {
    json::Object document;
    document["model"] = loaded.found.name;
    document["shape"] = json::Array{json::Value(T), json::Value(V)};
    document["out"] = *out;
    context.print_json(std::move(document));
  } else {
    context.note("{}: float32 [{}, {}]", *out, T, V);
  }
  return 0;
}

}  // namespace

const Command kLogits = {
    .name = "logits",
    .aliases = "",
    .summary = "teacher-forced logits to a NumPy file",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
