// A command is a row: name, flags, positionals, one function. Parsing, help, environment twins, settings files,
// completion and suggestions all read these tables. How to add one: src/cli/README.md.
#pragma once
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace hearth::cli {

class Context;  // cli/context.h

enum class ValueKind {
  none,      // a switch
  text,      // any string
  file,      // a string; completes file names
  integer,   // within [min, max]
  number,    // finite, within [min, max]
  size,      // bytes with a unit: 512, 4kB, 1.5GB, 2GiB (kB = 1000, KiB = 1024)
  duration,  // seconds with a unit: 250ms, 300s, 10m, 2h, 1d; a bare number is seconds
  choice,    // one of the words in `value`, "a|b|c"
};

struct Flag {
  std::string_view name;  // without dashes: "max-tokens"
  ValueKind kind = ValueKind::none;
  std::string_view value = {};     // placeholder in help: "N"; the words of a choice
  std::string_view fallback = {};  // default as one would type it; empty: unset
  std::string_view help = {};
  std::string_view aliases = {};  // other spellings with dashes, space-separated: "-n --predict"
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool repeat = false;                // may be given several times; otherwise the last one counts
  bool filled = false;                // of a text: an empty one says nothing and is refused
  std::string_view foreign_env = {};  // another program's variable that also sets it; HEARTH_<NAME> wins over it
};

struct Positional {
  std::string_view name;  // upper case: "MODEL"; MODEL as the first one can also be given as -m, --model, -hf
  std::string_view help;
  bool required = true;
  bool repeat = false;            // last one only
  std::string_view choices = {};  // "a|b": only these words
};

struct Command {
  std::string_view name;     // one word, or two for a verb below a verb: "train mask"
  std::string_view aliases;  // space-separated
  std::string_view summary;  // one line, at most 60 columns
  std::string_view details;  // further help text, lines of at most 80 columns; may be empty
  std::span<const Positional> positionals;
  std::span<const Flag> flags;  // besides the common ones
  int (*run)(Context&);         // returns an exit code, or throws Error
  bool json = true;             // has --json
  bool settings = true;         // reads hearth.toml and config.toml; off where a broken file must not matter
  bool hidden = false;          // not for people: in no help, completion or suggestion, and no setting reaches it
  bool passes_on = false;       // words behind the first positional are another program's, whatever they look like
};

// --help, --json (where json), --quiet, -v, --color, in the order help shows them.
std::span<const Flag> common_flags();

// All commands in the order of help; defined in cli/commands.cpp.
std::span<const Command* const> commands();

// Those that people type: without the hidden ones.
std::vector<const Command*> shown_commands();

}  // namespace hearth::cli
