#include "base/error.h"
#include "base/interrupt.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/sampling_flags.h"
#include "cli/stats_json.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
    {.name = "TEXT", .help = "the prompt; - reads standard input", .required = false},
};
constexpr std::array kOwnFlags = {
    Flag{.name = "prompt",
         .kind = ValueKind::text,
         .value = "TEXT",
         .help = "the prompt; - reads standard input",
         .aliases = "-p"},
    Flag{.name = "system", .kind = ValueKind::text, .value = "TEXT", .help = "system message in front of the prompt"},
    Flag{.name = "raw", .help = "the prompt as it is, without the model's chat template"},
    Flag{
        .name = "prompt-ids", .kind = ValueKind::text, .value = "IDS", .help = "token ids in place of a prompt: 1,2,3"},
    Flag{.name = "parse-special", .help = "names of special tokens in a raw prompt become those tokens"},
    Flag{.name = "ids", .help = "prints token ids in place of text"},
    Flag{.name = "ignore-eos", .help = "end tokens do not end the answer"},
    Flag{.name = "admission",
         .kind = ValueKind::choice,
         .value = "cap|strict",
         .fallback = "cap",
         .help = "max-tokens beyond the context: lowered, or refused"},
};
constexpr auto kFlags = joined(joined(kOwnFlags, kSamplingFlags), kModelFlags);

struct Prompt {
  std::string text;          // "-": standard input, which is read behind the load
  std::vector<int32_t> ids;  // of --prompt-ids, in place of the text
};

void check_prompt(const std::string& text, const Args& args) {
  if (text.empty() && !args.on("raw")) refuse_empty_prompt();
  require_utf8(text, "the prompt");
}

// Before anything is loaded.
Prompt prompt_of(const Context& context) {
  const Args& args = context.args();
  const auto flag = args.text("prompt"), positional = args.positional("TEXT"), ids = args.text("prompt-ids");
  const int given = flag.has_value() + positional.has_value() + ids.has_value();
  if (given != 1)
    fail(ErrorKind::invalid_argument, "generate takes one prompt: TEXT, --prompt TEXT, or --prompt-ids IDS ({} given)",
         given);
  if (ids) return {"", parse_ids(*ids, "--prompt-ids")};
  Prompt prompt{flag ? *flag : *positional, {}};
  check_prompt(prompt.text, args);
  require_utf8(args.text("system").value_or(""), "--system");
  return prompt;
}

std::vector<int32_t> prompt_ids(const Context& context, const LoadedModel& loaded, Prompt prompt) {
  const Args& args = context.args();
  for (const int32_t id : prompt.ids)
    if (id >= loaded.engine->spec().V)
      fail(ErrorKind::invalid_argument, "--prompt-ids: token id {} is outside the vocabulary of {}", id,
           loaded.engine->spec().V);
  if (!prompt.ids.empty()) return prompt.ids;
  prompt.text = text_or_stdin(prompt.text);
  check_prompt(prompt.text, args);
  const model::ModelText& text = *loaded.text;
  std::vector<int32_t> encoded;
  if (!args.on("raw") && text.has_template()) {
    std::vector<ChatMessage> messages;
    if (const auto system = args.text("system")) messages.push_back({"system", *system});
    messages.push_back({"user", prompt.text});
    encoded = text.encode_rendered(text.render(json::Value(messages_json(messages))));
  } else {
    if (args.given("system"))
      fail(ErrorKind::invalid_argument, "--system needs a chat template: {}",
           args.on("raw") ? "leave out --raw" : loaded.found.name + " has none");
    if (!args.on("raw")) context.note("{} has no chat template: the prompt is continued as it is", loaded.found.name);
    encoded = args.on("parse-special") ? text.encode_parsed(prompt.text) : text.encode_text(prompt.text);
    if (encoded.empty()) {
      if (!text.tokenizer().bos())
        fail(ErrorKind::invalid_argument, "the prompt is empty and {} has no BOS token to begin with",
             loaded.found.name);
      encoded.push_back(*text.tokenizer().bos());
    }
  }
  return encoded;
}

json::Array numbers(const std::vector<int32_t>& ids) {
  json::Array list;
  for (const int32_t id : ids) list.emplace_back(id);
  return list;
}

int run(Context& context) {
  decode::GenerateOptions options = sampling_options(context);
  const Prompt given = prompt_of(context);
  LoadedModel loaded = load_model(context);
  const std::vector<int32_t> prompt = prompt_ids(context, loaded, given);
  const text::Tokenizer& tokenizer = loaded.text->tokenizer();
  if (!context.args().on("ignore-eos")) options.end_ids = decode::end_ids(loaded.engine->spec(), tokenizer);
  if (const auto newline = tokenizer.encode("\n", {.parse_special = false, .add_special = false}); newline.size() == 1)
    options.newline_ids = newline;
  const int64_t room = loaded.engine->context() - static_cast<int64_t>(prompt.size()) + 1;
  if (*context.args().text("admission") == "strict" && options.max_tokens > room)
    fail(ErrorKind::out_of_memory, "{} prompt tokens and {} more do not fit the context of {}", prompt.size(),
         options.max_tokens, loaded.engine->context());

  std::optional<Interrupt> interrupt;  // from the first words on: before that Ctrl-C has nothing to keep
  options.cancel = &Interrupt::flag();
  decode::Sequence sequence = loaded.engine->cache().make();
  const bool stream = !context.json() && !context.args().on("ids");
  const decode::Completion c = decode::complete(*loaded.engine, tokenizer, sequence, prompt, options,
                                                context.args().texts("stop"), [&](std::string_view piece) {
                                                  if (!interrupt) interrupt.emplace();
                                                  if (!stream) return;
                                                  context.write_out(piece);
                                                  context.flush_out();
                                                });
  const decode::Generated& g = c.generated;
  if (context.json()) {
    json::Object document;
    document["model"] = loaded.found.name;
    if (!loaded.adapter.empty()) document["adapter"] = loaded.adapter;
    document["prompt_ids"] = numbers(prompt);
    document["ids"] = numbers(g.ids);
    document["text"] = c.text;
    document["finish_reason"] = name_of(g.finish);
    document["max_tokens"] = g.max_tokens;
    if (draws(options.sampler)) document["seed"] = fmt::format("{}", options.sampler.seed);
    json::Array logprobs;
    for (const float l : g.logprobs) logprobs.emplace_back(double{l});
    document["logprobs"] = std::move(logprobs);
    document["stats"] = stats_json(g.stats, loaded.times.total);
    context.print_json(std::move(document));
  } else if (context.args().on("ids")) {
    std::string line;
    for (const int32_t id : g.ids) line += fmt::format("{}{}", line.empty() ? "" : ",", id);
    context.print("{}\n", line);
  } else {
    context.print("\n");
  }
  if (g.max_tokens < options.max_tokens)
    context.note("max-tokens was lowered to {}: the context holds {}", g.max_tokens, loaded.engine->context());
  note_seed(context, options.sampler);
  context.note("{}", stats_line(g.stats, loaded.times.total));
  return g.finish == decode::FinishReason::cancelled ? 130 : 0;
}

}  // namespace

const Command kGenerate = {
    .name = "generate",
    .aliases = "gen",
    .summary = "one answer, for scripts",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli
