// An editor of one entry (which may hold several lines) as a pure state machine: bytes of the terminal in, text and
// rendering strings out. terminal.h gives it a terminal. One thread.
//
// Keys: arrows, Home, End, Delete, Ctrl-Left and Ctrl-Right; Ctrl-A E B F P N H D K U W Y T L R G, Alt-B F D,
// Alt-Backspace; Enter submits, Alt-Enter begins a new line; Up and Down move between lines and, past the first or
// last one, through the history. A pasted text (bracketed paste) is inserted whole. An entry that begins with """ is
// submitted by the Enter behind its closing """.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/history.h"

namespace hearth::cli {

class LineEditor {
 public:
  enum class Event {
    none,
    submit,     // text() is the entry
    interrupt,  // Ctrl-C
    end,        // Ctrl-D on an empty entry
    suspend,    // Ctrl-Z
  };

  // `history` must outlive the editor.
  explicit LineEditor(const History& history) : history_(history) {}

  // A new, empty entry. Prompts are plain text of few columns, the second for lines after the first.
  void begin(std::string prompt, std::string continuation);
  void resize(int columns, int rows);  // at least 8 and 2

  Event feed(char byte);

  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // byte offset

  // Bytes that bring the terminal from the last rendering to the present state.
  std::string render();
  // The same with the cursor put on the line below the entry: for the end of editing.
  std::string render_end();
  // The terminal was cleared or written to by others: the next render() starts at its cursor.
  void forget_screen();

 private:
  enum class Input { ground, escape, csi, ss3, paste };

  Event on_ground(unsigned char byte);
  Event on_control(unsigned char byte);
  void on_escape(unsigned char byte);
  void on_csi(unsigned char final);
  void on_search(unsigned char byte, bool& handled);
  void search_again(bool older);
  void leave_search(bool restore);

  void insert(std::string_view text);
  void erase(size_t begin, size_t end);
  void kill(size_t begin, size_t end, bool forward);
  size_t left(size_t at) const;
  size_t right(size_t at) const;
  size_t word_left(size_t at) const;
  size_t word_right(size_t at) const;
  size_t line_begin(size_t at) const;
  size_t line_end(size_t at) const;
  void move_vertically(int direction);
  void browse(int direction);
  void transpose();
  bool wants_more() const;

  struct Screen {
    std::vector<std::string> rows;
    std::vector<int> widths;
    int cursor_row = 0, cursor_column = 0;
  };
  Screen layout() const;
  std::string draw(bool at_end);

  const History& history_;
  std::string prompt_, continuation_;
  int columns_ = 80, rows_ = 24;

  std::string text_;
  size_t cursor_ = 0;
  std::string killed_;
  bool last_was_kill_ = false, this_is_kill_ = false;

  Input input_ = Input::ground;
  std::string pending_;  // of a UTF-8 sequence, an escape sequence, or a paste

  size_t browsing_ = 0;  // history entry shown, counted from the newest; 0: the draft
  std::string draft_;

  bool searching_ = false, search_failed_ = false;
  std::string query_, before_search_;
  size_t search_at_ = 0;  // index into the history

  std::vector<int> drawn_widths_;  // of the rows above and at the cursor when last drawn
  int drawn_column_ = 0;
  bool clear_screen_ = false;
};

}  // namespace hearth::cli
