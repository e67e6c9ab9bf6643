#include <unistd.h>

#include <optional>

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/engine_backend.h"
#include "cli/history.h"
#include "cli/input.h"
#include "cli/sampling_flags.h"
#include "cli/stats_json.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
    {.name = "PROMPT", .help = "answers it and ends; without it a chat begins", .required = false},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "system", .kind = ValueKind::text, .value = "TEXT", .help = "system message of the conversation"},
};
constexpr auto kFlags = joined(joined(kOwnFlags, kSamplingFlags), kModelFlags);

int answer_once(Context& context, EngineBackend& backend, const std::string& prompt, double load_ms) {
  std::optional<Interrupt> interrupt;  // from the first words on: before that Ctrl-C has nothing to keep
  std::vector<ChatMessage> messages;
  if (const auto system = context.args().text("system")) messages.push_back({"system", *system});
  messages.push_back({"user", prompt});
  const ChatReply reply = backend.reply(
      messages,
      [&](std::string_view piece) {
        if (!interrupt) interrupt.emplace();
        context.write_out(piece);
        context.flush_out();
      },
      Interrupt::flag());
  context.print("\n");
  if (reply.context_full) context.note("cut: the context is full");
  context.note("{}", stats_line(reply.stats, load_ms));
  return reply.finish_reason == "cancelled" ? 130 : 0;
}

int run(Context& context) {
  decode::GenerateOptions options = sampling_options(context);
  const auto prompt = context.args().positional("PROMPT");
  if (prompt && prompt->empty()) refuse_empty_prompt();
  require_utf8(prompt.value_or(""), "the prompt");
  require_utf8(context.args().text("system").value_or(""), "--system");
  LoadedModel loaded = load_model(context);
  const text::Tokenizer& tokenizer = loaded.text->tokenizer();
  options.end_ids = decode::end_ids(loaded.engine->spec(), tokenizer);
  if (const auto newline = tokenizer.encode("\n", {.parse_special = false, .add_special = false}); newline.size() == 1)
    options.newline_ids = newline;
  if (!loaded.text->has_template())
    context.note("{} has no chat template: text is continued as it is", loaded.found.name);
  EngineBackend backend(loaded, options, context.args().texts("stop"));
  if (prompt) {
    const int code = answer_once(context, backend, *prompt, loaded.times.total);
    note_seed(context, options.sampler);
    return code;
  }

  Interrupt interrupt;
  const ChatOutput output{.answer =
                              [&](std::string_view piece) {
                                context.write_out(piece);
                                context.flush_out();
                              },
                          .note = [&](std::string_view line) { context.note("{}", line); },
                          .error = [&](std::string_view line) { context.warn("{}", line); }};
  std::unique_ptr<History> history;
  std::unique_ptr<LineSource> lines;
  if (context.in_is_terminal() && context.out_is_terminal()) {
    history = std::make_unique<History>(hub::state_folder(context.env()) / "history");
    lines = std::make_unique<TerminalLines>(STDIN_FILENO, STDOUT_FILENO, *history);
    context.note("{} is ready; /help lists the commands, /bye ends", loaded.found.name);
  } else {
    lines = std::make_unique<PlainLines>(STDIN_FILENO);
  }
  Chat chat(backend, *lines, interrupt, output, context.env());
  if (const auto system = context.args().text("system")) chat.set_system(*system);
  const bool whole = chat.run();
  // On a terminal a person has seen it; a script learns of it from the exit code.
  return whole || context.in_is_terminal() ? 0 : exit_code(ErrorKind::io);
}

}  // namespace

const Command kRun = {
    .name = "run",
    .aliases = "",
    .summary = "chat on the terminal, or answer one prompt",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .json = false,
};

}  // namespace hearth::cli
