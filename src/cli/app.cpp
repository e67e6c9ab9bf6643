#include "cli/app.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/mmap.h"
#include "base/printable.h"
#include "cli/context.h"
#include "cli/foreign_words.h"
#include "cli/help.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

bool answers_to(const Command& command, std::string_view word) {
  if (command.name == word) return true;
  for (const std::string& alias : split_words(command.aliases))
    if (alias == word) return true;
  return false;
}

bool is_common_flag(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const Flag& flag : common_flags()) {
    if (name == "--" + std::string(flag.name)) return true;
    for (const std::string& alias : split_words(flag.aliases))
      if (name == alias) return true;
  }
  return false;
}

struct Verb {
  const Command* command = nullptr;
  std::vector<std::string> words;  // of the command line, without the verb
};

// The verb is the first word that is no flag; two words where such a verb exists ("train mask"). Flags before it must
// be common ones, of which --color alone takes a value.
Verb find_verb(const std::vector<std::string>& words) {
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with('-'); at += words[at] == "--color" ? 2 : 1)
    if (!is_common_flag(words[at]))
      fail(ErrorKind::invalid_argument,
           "{} stands in front of the verb, where only the flags of all verbs may: hearth VERB {} ...", words[at],
           words[at]);
  if (at >= words.size()) return {};
  Verb verb;
  size_t count = 1;
  for (const Command* command : commands()) {
    if (at + 1 < words.size() && answers_to(*command, words[at] + " " + words[at + 1])) {
      verb.command = command;
      count = 2;
      break;
    }
    if (!verb.command && answers_to(*command, words[at])) verb.command = command;
  }
  if (!verb.command) {
    if (const auto hint = foreign_hint(words[at]))
      fail(ErrorKind::invalid_argument, "no verb '{}': {}", words[at], *hint);
    std::vector<std::string> names;
    for (const Command* command : shown_commands()) {
      names.emplace_back(command->name);
      for (std::string& alias : split_words(command->aliases)) names.push_back(std::move(alias));
    }
    const std::vector<std::string> near = hub::nearest(words[at], names);
    fail(ErrorKind::invalid_argument, "no verb '{}'{}", words[at],
         near.empty() ? std::string() : fmt::format("; did you mean {}?", fmt::join(near, " or ")));
  }
  verb.words.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  verb.words.insert(verb.words.end(), words.begin() + static_cast<std::ptrdiff_t>(at + count), words.end());
  return verb;
}

// The next thing to type after a failure; empty where the sentence already says it.
std::string next_step(const Error& error, const Command* command) {
  const std::string_view sentence = error.what();
  if (sentence.find("hearth ") != std::string_view::npos) return "";
  if (error.kind() == ErrorKind::invalid_argument)
    return command ? fmt::format("try: hearth {} --help", command->name) : "try: hearth --help";
  // Only of a model's own files; a person's JSON and text is mended, not fetched.
  if (error.kind() == ErrorKind::corrupt_file && command && !command->positionals.empty())
    for (const std::string_view file : {".gguf: ", ".safetensors: ", "config.json: ", "tokenizer.json: ",
                                        "tokenizer.model: ", ".safetensors.index.json: "})
      if (sentence.find(file) != std::string_view::npos)
        return "the file is damaged or of an unknown form: fetch it again, then hearth import it";
  return "";
}

int report(const Error& error, const Command* command) {
  std::fflush(stdout);
  if (error.kind() == ErrorKind::cancelled) {
    std::fprintf(stderr, "hearth: %s\n", printable(error.what(), kSentenceBytesMax).c_str());
    return exit_code(error.kind());
  }
  std::string text = fmt::format("hearth: {}\n", printable(error.what(), kSentenceBytesMax));
  const std::string step = next_step(error, command);
  if (!step.empty()) text += fmt::format("  {}\n", step);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return exit_code(error.kind());
}

int show_help(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int dispatch(const std::vector<std::string>& words, const Command*& command) {
  if (words.empty()) {
    const std::string text = help_overview();
    std::fwrite(text.data(), 1, text.size(), stderr);
    return exit_code(ErrorKind::invalid_argument);
  }
  if (words[0] == "--version" || words[0] == "-V") return dispatch({"version"}, command);
  const bool help_verb = words[0] == "help";
  if (help_verb && words.size() == 2 && words[1] == "help") return show_help(help_overview());
  const Verb verb = find_verb(help_verb ? std::vector<std::string>(words.begin() + 1, words.end()) : words);
  if (!verb.command) {
    for (const std::string& word : words)
      if (word == "--help" || word == "-h" || word == "help") return show_help(help_overview());
    fail(ErrorKind::invalid_argument, "no verb behind {}", words.back());
  }
  command = verb.command;
  if (help_verb) return show_help(help_of(*command));

  const RawArgs raw = parse_words(*command, verb.words);
  if (raw.help) return show_help(help_of(*command));
  const hub::Env env = hub::process_env();
  const Settings settings = command->settings ? load_settings(working_folder(), env) : Settings{};
  const auto read_again = [&] { return resolve(*command, raw, env, load_settings(working_folder(), env)); };
  Context context(*command, resolve(*command, raw, env, settings), env, read_again);
  log::Options logging;
  logging.level = context.quiet() ? log::Level::error : context.verbose() ? log::Level::debug : log::Level::warn;
  logging.colour = use_color(context.args().text("color").value_or("auto"), env, context.err_is_terminal());
  log::global().configure(logging);
  for (const std::string& note : context.args().notes()) context.note("{}", note);
  for (const SettingsFile* file : {&settings.project, &settings.user})
    for (const std::string& sentence : unknown_settings(*file)) context.warn("{}", sentence);
  const int code = command->run(context);
  context.flush_out();
  return code;
}

// A descriptor of 0 to 2 that the caller closed would be the next file that is opened, and our notes would go into it.
// Each is filled the wrong way round, so that reading or writing it still fails.
void fill_closed_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) ::_exit(1);
}

// Ctrl-C where nothing needs to be kept: the same exit code as where an Interrupt stops in order. A SIGINT that the
// caller chose to ignore (nohup, a background job) stays ignored.
void end_on_interrupt() {
  struct sigaction before{};
  if (::sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
    ::signal(SIGINT, [](int) { ::_exit(exit_code(ErrorKind::cancelled)); });
}

}  // namespace

int run(int argc, char** argv) {
  const Command* command = nullptr;
  fill_closed_descriptors();
  end_on_interrupt();
  ::signal(SIGXFSZ, SIG_IGN);  // a file at the process's size limit is a failed write, to be told in a sentence
  MappedFile::report_losses();
  try {
    const int code = dispatch(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), command);
    if (std::fflush(stdout) != 0) fail(ErrorKind::io, "cannot write to standard output: {}", std::strerror(errno));
    return code;
  } catch (const Error& error) {
    return report(error, command);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::out_of_memory, "out of memory"), command);
  } catch (const std::system_error& error) {  // of std::thread and std::async; files of ours throw Error
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    return report(
        Error(ErrorKind::busy,
              thread ? "a thread cannot be made: a limit on processes or memory is reached (ulimit -u, ulimit -v)"
                     : std::string(error.what())),
        command);
  } catch (const std::exception& error) {
    return report(Error(ErrorKind::io, error.what()), command);
  }
}

}  // namespace hearth::cli
