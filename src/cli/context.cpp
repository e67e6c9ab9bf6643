#include "cli/context.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::cli {

bool use_color(std::string_view when, const hub::Env& env, bool is_terminal) {
  if (when != "auto") return when == "always";
  const auto value = [&](const char* name) { return env(name).value_or(""); };
  if (!value("NO_COLOR").empty()) return false;
  if (!value("CLICOLOR_FORCE").empty() && value("CLICOLOR_FORCE") != "0") return true;
  return is_terminal && value("TERM") != "dumb";
}

Context::Context(const Command& command, Args args, hub::Env env, std::function<Args()> read_again)
    : command_(command),
      args_(std::move(args)),
      env_(std::move(env)),
      read_again_(std::move(read_again)),
      json_(command.json && args_.on("json")),
      quiet_(args_.on("quiet")),
      verbose_(args_.on("verbose") && !quiet_),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1),
      color_(use_color(args_.text("color").value_or("auto"), env_, out_is_terminal_)) {}

bool Context::in_is_terminal() const { return ::isatty(STDIN_FILENO) == 1; }

std::string Context::required(std::string_view positional) const {
  const std::optional<std::string> value = args_.positional(positional);
  HEARTH_CHECK(value.has_value(), "{} is not required by {}", positional, command_.name);
  return *value;
}

void Context::print_json(json::Object document) const {
  document.members.insert(document.members.begin(), {"schema_version", 1});
  write_out(json::dump(document, {.indent = out_is_terminal_ ? 2 : 0}) + "\n");
}

// The first failure's reason is kept: later calls on a stream that has failed may set none.
void Context::write_out(std::string_view text) const {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && out_error_ == 0) out_error_ = errno;
}

bool Context::try_flush() const {
  errno = 0;
  if (std::fflush(stdout) == 0) return !std::ferror(stdout);
  if (out_error_ == 0) out_error_ = errno;
  return false;
}

void Context::flush_out() const {
  if (!try_flush())
    fail(ErrorKind::io, "cannot write to standard output: {}", std::strerror(out_error_ != 0 ? out_error_ : EIO));
}

void Context::write_err(const std::string& line) const {
  try_flush();  // keeps the order where both go to one terminal; failures show at the end
  const std::string text = "hearth: " + printable(line, kSentenceBytesMax) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string Context::styled(std::string_view code, std::string_view text) const {
  return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace hearth::cli
