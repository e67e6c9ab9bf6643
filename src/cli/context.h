// What a command is given: its checked arguments, the environment, and where its words go. Results on stdout; notes,
// progress and warnings on stderr.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/args.h"
#include "hub/paths.h"

namespace hearth::cli {

// Whether to colour: --color decides unless it is "auto", then NO_COLOR, CLICOLOR_FORCE, and last the terminal
// (no-color.org; an empty NO_COLOR does not count, CLICOLOR_FORCE=0 does not force, TERM=dumb is no terminal).
bool use_color(std::string_view when, const hub::Env& env, bool is_terminal);

class Context {
 public:
  // read_again: the arguments as files and environment say now, under the same words of the command line.
  Context(const Command& command, Args args, hub::Env env, std::function<Args()> read_again = {});

  const Command& command() const { return command_; }
  const Args& args() const { return args_; }
  // The arguments anew, after files of settings have changed. Throws as load_settings and resolve.
  Args read_again() const { return read_again_(); }
  const hub::Env& env() const { return env_; }
  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }
  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool in_is_terminal() const;

  // The positional MODEL, FILE, ...; only for required ones.
  std::string required(std::string_view positional) const;

  template <class... Args_>
  void print(fmt::format_string<Args_...> format, Args_&&... values) const {
    write_out(fmt::format(format, std::forward<Args_>(values)...));
  }
  // Puts "schema_version": 1 first and ends the line.
  void print_json(json::Object document) const;
  void write_out(std::string_view text) const;
  void flush_out() const;  // throws Error{io} when stdout cannot take it

  // "hearth: ..." lines on stderr: notes unless --quiet, details with -v only, warnings always.
  template <class... Args_>
  void note(fmt::format_string<Args_...> format, Args_&&... values) const {
    if (!quiet_) write_err(fmt::format(format, std::forward<Args_>(values)...));
  }
  template <class... Args_>
  void detail(fmt::format_string<Args_...> format, Args_&&... values) const {
    if (verbose_) write_err(fmt::format(format, std::forward<Args_>(values)...));
  }
  template <class... Args_>
  void warn(fmt::format_string<Args_...> format, Args_&&... values) const {
    write_err("warning: " + fmt::format(format, std::forward<Args_>(values)...));
  }

  // Text in the style where stdout is coloured, else the text alone.
  std::string bold(std::string_view text) const { return styled("1", text); }
  std::string dim(std::string_view text) const { return styled("2", text); }
  std::string red(std::string_view text) const { return styled("31", text); }
  std::string green(std::string_view text) const { return styled("32", text); }
  std::string yellow(std::string_view text) const { return styled("33", text); }
  bool color() const { return color_; }

 private:
  void write_err(const std::string& line) const;
  bool try_flush() const;
  std::string styled(std::string_view code, std::string_view text) const;

  const Command& command_;
  Args args_;
  hub::Env env_;
  std::function<Args()> read_again_;
  mutable int out_error_ = 0;  // errno of the first write to stdout that failed
  bool json_, quiet_, verbose_, out_is_terminal_, err_is_terminal_, color_;
};

}  // namespace hearth::cli
