#include "cli/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/help.h"

namespace hearth::cli {
namespace {

constexpr ForeignVerb kVerbs[] = {
    {"chat cli interactive", "hearth run MODEL opens a chat"},
    {"ask complete prompt", "hearth run MODEL \"a question\" answers one, hearth generate is for scripts"},
    {"start up api", "hearth serve MODEL starts the server"},
    {"unload kill down quit", "hearth stop NAME unloads a model, hearth stop ends the server"},
    {"status top", "hearth ps tells what the server does"},
    {"load", "hearth serve MODEL loads it; a server loads the others of the store when a request names them"},
    {"models images scan-cache manage", "hearth ls lists the models of the store"},
    {"info inspect", "hearth show MODEL tells what a model is"},
    {"embedding embeddings", "hearth embed MODEL \"a text\" makes vectors"},
    {"benchmark speed", "hearth bench MODEL measures it"},
    {"eval evaluate", "hearth perplexity MODEL --data FILE judges a model, hearth kl compares two"},
    {"check health", "hearth doctor checks this machine and the store"},
    {"pull get download fetch install add",
     "hearth fetches no models yet; hearth import FILE.gguf takes one that you have, and what `hf download ORG/NAME` "
     "puts into the hub cache is found as it is (hearth ls)"},
    {"rm rmi remove delete del delete-cache prune",
     "hearth deletes no models yet; a model is the folder models--ORG--NAME of the store, and hearth ls --json tells "
     "where that is"},
    {"create build", "there are no Modelfiles; hearth import FILE.gguf --name ORG/NAME gives a file a name"},
    {"cp copy tag rename",
     "an alias in models.toml is a second name of a model (docs/operations.md, Settings of models)"},
    {"convert", "nothing needs to be converted: hearth run PATH reads .gguf files, MLX and Hugging Face folders"},
    {"quantize quant imatrix",
     "hearth quantizes nothing yet; hearth run PATH takes .gguf files and MLX folders that are quantized already"},
    {"train finetune lora fuse",
     "hearth trains nothing yet; hearth run and hearth serve take adapters that exist: --adapter DIR"},
    {"push upload share", "hearth uploads nothing"},
    {"search", "hearth ls WORD searches this machine's store; hearth asks no hub"},
    {"login logout signin signout", "hearth has no accounts; keys of a server: hearth serve MODEL --api-key-file FILE"},
    {"log logs", "hearth serve --log-file FILE keeps a log; that of --detach is logs/serve.log in the state folder"},
    {"update upgrade self-update", "hearth does not renew itself; ./start in its repository builds what stands there"},
    {"open web ui gui", "hearth launch web opens the server's page"},
    {"claude codex opencode pi", "hearth launch NAME starts it with this machine's server"},
};

constexpr ForeignFlag kFlags[] = {
    {.words = "--ctx --ctx-size --num-ctx --n-ctx", .flag = "context"},
    {.words = "--n-predict --num-predict --max-new-tokens", .flag = "max-tokens"},
    {.words = "--repeat-penalty", .flag = "repetition-penalty"},
    {.words = "--repeat-last-n", .flag = "repetition-context"},
    {.words = "--cache-type-k --cache-type-v --kv-bits -ctk -ctv", .flag = "kv"},
    {.words = "--lora", .flag = "adapter"},
    {.words = "--ubatch-size --prefill-step-size -ub", .flag = "prefill-chunk"},
    {.words = "--n-gpu-layers --gpu-layers --gpus -ngl", .hint = "this build computes on the CPU alone"},
    {.words = "-p --prompt", .flag = "prompt", .hint = "the prompt stands behind MODEL"},
    {.words = "-f --file", .hint = "hearth generate MODEL - reads the prompt from standard input"},
    {.words = "-cnv -i --interactive --conversation", .hint = "hearth run MODEL without a prompt is a chat"},
};

bool holds(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split_words(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace

std::span<const ForeignVerb> foreign_verbs() { return kVerbs; }
std::span<const ForeignFlag> foreign_flags() { return kFlags; }

std::optional<std::string_view> foreign_hint(std::string_view verb) {
  for (const ForeignVerb& row : kVerbs)
    if (holds(row.words, verb)) return row.hint;
  return std::nullopt;
}

std::optional<std::string> foreign_hint(const Command& command, std::string_view flag) {
  for (const ForeignFlag& row : kFlags) {
    if (!holds(row.words, flag)) continue;
    for (const Flag& own : command.flags)
      if (!row.flag.empty() && own.name == row.flag) return fmt::format("here it is --{} {}", own.name, own.value);
    if (!row.hint.empty()) return std::string(row.hint);
  }
  return std::nullopt;
}

void refuse_address(std::string_view name) {
  const bool known = name.starts_with("hf.co/") || name.starts_with("huggingface.co/");
  if (!known && name.find("://") == std::string_view::npos) return;
  fail(ErrorKind::invalid_argument,
       "{} is an address, and hearth fetches no models yet: hearth import FILE.gguf takes a file that you have, and "
       "what `hf download ORG/NAME` brings is found by its name",
       name);
}

}  // namespace hearth::cli
