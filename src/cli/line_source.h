// Where a chat's lines come from: a terminal with the line editor, or a plain stream.
#pragma once
#include <memory>
#include <string>

#include "cli/history.h"
#include "cli/line_editor.h"

namespace hearth::cli {

struct InputLine {
  enum class Kind { text, interrupted, end } kind = Kind::end;
  std::string text;  // valid UTF-8; may hold line feeds
};

class LineSource {
 public:
  virtual ~LineSource() = default;
  virtual InputLine read(const std::string& prompt) = 0;
};

// Lines of a file descriptor without prompts; an entry that begins with """ runs to the line with its closing """.
// Throws Error{io} when reading fails.
class PlainLines : public LineSource {
 public:
  explicit PlainLines(int fd) : fd_(fd) {}
  InputLine read(const std::string& prompt) override;

 private:
  bool read_line(std::string& line);
  int fd_;
  std::string buffer_;
  bool at_end_ = false;
};

// The line editor on a terminal. Raw mode holds during read() alone, so Ctrl-C while an answer is printed is a signal.
class TerminalLines : public LineSource {
 public:
  // `history` must outlive it; entries read are added to it.
  TerminalLines(int in, int out, History& history);
  ~TerminalLines() override;
  InputLine read(const std::string& prompt) override;

 private:
  struct Raw;
  InputLine edit(const std::string& prompt, Raw& raw);
  void fit_window();
  void put(const std::string& bytes);
  int in_, out_;
  History& history_;
  LineEditor editor_;
  std::string typed_ahead_;  // behind an Enter, read together with it
};

}  // namespace hearth::cli
