#include "cli/completion.h"

#include "cli/commands.h"
#include "cli/context.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "SHELL", .help = "bash, zsh or fish", .choices = "bash|zsh|fish"},
};

int run(Context& context) {
  const std::string shell = context.required("SHELL");
  context.write_out(shell == "bash" ? bash_completion() : shell == "zsh" ? zsh_completion() : fish_completion());
  return 0;
}

}  // namespace

const Command kCompletion = {
    .name = "completion",
    .aliases = "",
    .summary = "completion script for bash, zsh or fish",
    .details =
        "bash: hearth completion bash > /etc/bash_completion.d/hearth\n"
        "zsh:  hearth completion zsh > \"${fpath[1]}/_hearth\"\n"
        "fish: hearth completion fish > ~/.config/fish/completions/hearth.fish",
    .positionals = kPositionals,
    .flags = {},
    .run = run,
    .json = false,
    .settings = false,
};

}  // namespace hearth::cli
