#include "cli/line_editor.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "cli/screen.h"
#include "cli/text_width.h"

namespace hearth::cli {
namespace {
using Event = LineEditor::Event;
using testing::Screen;

constexpr std::string_view kUp = "\x1b[A", kDown = "\x1b[B", kRight = "\x1b[C", kLeft = "\x1b[D";
constexpr std::string_view kPaste = "\x1b[200~", kPasted = "\x1b[201~";

std::string ctrl(char letter) { return {static_cast<char>(letter - '@')}; }

class LineEditorTest : public ::testing::Test {
 protected:
  LineEditorTest() { editor.begin("> ", "  "); }
  Event type(std::string_view bytes) {
    Event event = Event::none;
    for (const char c : bytes) {
      event = editor.feed(c);
      screen.write(editor.render());
    }
    return event;
  }
  std::string marked() const {  // the text with | at the cursor
    std::string text = editor.text();
    return text.insert(editor.cursor(), "|");
  }
  History history;
  LineEditor editor{history};
  Screen screen{80, 24};
};

TEST_F(LineEditorTest, types_and_submits) {
  EXPECT_EQ(type("hello"), Event::none);
  EXPECT_EQ(screen.line(0), "> hello");
  EXPECT_EQ(screen.column(), 7);
  EXPECT_EQ(type("\r"), Event::submit);
  EXPECT_EQ(editor.text(), "hello");
  screen.write(editor.render_end());
  EXPECT_EQ(screen.row(), 1);
  EXPECT_EQ(screen.column(), 0);
}

TEST_F(LineEditorTest, moves_and_kills_as_emacs_does) {
  type("one two  three");
  type(ctrl('A') + "x");
  EXPECT_EQ(marked(), "x|one two  three");
  type(ctrl('D'));
  EXPECT_EQ(marked(), "x|ne two  three");
  type(ctrl('H') + "o");
  type(ctrl('E'));
  type(ctrl('W'));
  EXPECT_EQ(marked(), "one two  |");
  type(ctrl('W'));
  EXPECT_EQ(marked(), "one |");
  type(ctrl('Y'));
  EXPECT_EQ(marked(), "one two  three|");  // kills in a row are one text
  type(
      "\x1b"
      "b");
  EXPECT_EQ(marked(), "one two  |three");
  type(
      "\x1b"
      "b");
  type(ctrl('K'));
  EXPECT_EQ(marked(), "one |");
  type(std::string(kLeft) + std::string(kLeft) + ctrl('U'));
  EXPECT_EQ(marked(), "|e ");
  type(ctrl('Y') + "\x1b[H\x1b[C");
  EXPECT_EQ(marked(), "o|ne ");
  type("\x1b[F\x1b[3~\x1b[1;5D");
  EXPECT_EQ(marked(), "|one ");
  type(
      "\x1b"
      "f");
  EXPECT_EQ(marked(), "one| ");
}

TEST_F(LineEditorTest, transposes) {
  type("abc" + ctrl('T'));
  EXPECT_EQ(marked(), "acb|");
  type(std::string(kLeft) + ctrl('T'));
  EXPECT_EQ(marked(), "abc|");
  type(ctrl('A') + ctrl('T'));
  EXPECT_EQ(marked(), "|abc");
}

TEST_F(LineEditorTest, events) {
  EXPECT_EQ(type(ctrl('D')), Event::end);
  EXPECT_EQ(type("x" + ctrl('C')), Event::interrupt);
  EXPECT_EQ(type(ctrl('Z')), Event::suspend);
}

TEST_F(LineEditorTest, works_on_clusters) {
  type("e\xCC\x81\xE6\x97\xA5\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB");
  EXPECT_EQ(screen.column(), 2 + 1 + 2 + 2);
  type(kLeft);
  EXPECT_EQ(screen.column(), 5);
  type(kLeft);
  EXPECT_EQ(screen.column(), 3);
  type(ctrl('D'));
  EXPECT_EQ(screen.line(0), "> e\xCC\x81\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB");
  type(ctrl('H'));
  EXPECT_EQ(editor.cursor(), 0u);
  type(ctrl('E') + ctrl('H'));
  EXPECT_EQ(editor.text(), "");
}

TEST_F(LineEditorTest, broken_utf8_is_replaced) {
  type("a\xFF");
  type(
      "\xE6\x97"
      "b");
  EXPECT_EQ(editor.text(),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
}

TEST_F(LineEditorTest, wraps_at_the_edge) {
  screen = Screen(10, 24);
  editor.resize(10, 24);
  type("abcdefgh");  // fills the row exactly
  EXPECT_EQ(screen.line(0), "> abcdefgh");
  EXPECT_EQ(screen.row(), 1);
  EXPECT_EQ(screen.column(), 0);
  type("ij");
  EXPECT_EQ(screen.line(1), "ij");
  type(ctrl('A'));
  EXPECT_EQ(screen.row(), 0);
  EXPECT_EQ(screen.column(), 2);
  type("\xE6\x97\xA5");
  EXPECT_EQ(screen.line(0),
            "> \xE6\x97\xA5"
            "abcdef");
  EXPECT_EQ(screen.line(1), "ghij");
  type(ctrl('K') + "1234567");  // a wide character does not fit into the last column
  type(ctrl('A') + "x" + ctrl('E') + "\xE6\x97\xA5");
  EXPECT_EQ(screen.line(1).empty(), false);
}

TEST_F(LineEditorTest, more_rows_than_the_terminal_show_those_at_the_cursor) {
  screen = Screen(10, 4);
  editor.resize(10, 4);
  type(std::string(kPaste) + "1\n2\n3\n4\n5\n6" + std::string(kPasted));
  EXPECT_EQ(screen.line(screen.row()), "  6");
  type(ctrl('P') + ctrl('P') + ctrl('P') + ctrl('P') + ctrl('P'));
  EXPECT_EQ(marked(), "1|\n2\n3\n4\n5\n6");
  EXPECT_EQ(screen.line(screen.row()), "> 1");
}

TEST_F(LineEditorTest, a_paste_is_inserted_whole_and_clean) {
  EXPECT_EQ(type("a" + std::string(kPaste) + "1\r\n2\r3\t\x1b[31mred\x07" + std::string(kPasted) + "b"), Event::none);
  EXPECT_EQ(editor.text(), "a1\n2\n3\t[31mredb");
  EXPECT_EQ(screen.line(0), "> a1");
  EXPECT_EQ(screen.line(1), "  2");
  EXPECT_EQ(screen.line(2), "  3    [31mredb");
  EXPECT_EQ(type("\r"), Event::submit);
}

TEST_F(LineEditorTest, triple_quotes_take_several_lines) {
  EXPECT_EQ(type("\"\"\"one\r"), Event::none);
  EXPECT_EQ(type("two\r"), Event::none);
  EXPECT_EQ(type("\"\"\"\r"), Event::submit);
  EXPECT_EQ(editor.text(), "\"\"\"one\ntwo\n\"\"\"");
}

TEST_F(LineEditorTest, alt_enter_begins_a_line_and_arrows_move_between_lines) {
  type("first\x1b\rab\x1b\rlonger");
  EXPECT_EQ(editor.text(), "first\nab\nlonger");
  type(kUp);
  EXPECT_EQ(marked(), "first\nab|\nlonger");
  type(kUp);
  EXPECT_EQ(marked(), "fi|rst\nab\nlonger");
  type(kDown);
  EXPECT_EQ(marked(), "first\nab|\nlonger");
}

TEST_F(LineEditorTest, walks_through_the_history) {
  history.add("one");
  history.add("two\nlines");
  type("draft");
  type(kUp);
  EXPECT_EQ(editor.text(), "two\nlines");
  type(kUp);  // within the entry first
  EXPECT_EQ(marked(), "two|\nlines");
  type(kUp);
  EXPECT_EQ(editor.text(), "one");
  type(kUp);
  EXPECT_EQ(editor.text(), "one");
  type(kDown);
  type(kDown);
  EXPECT_EQ(editor.text(), "draft");
}

TEST_F(LineEditorTest, searches_backwards) {
  history.add("alpha one");
  history.add("beta");
  history.add("alpha two");
  type(ctrl('R') + "alp");
  EXPECT_EQ(editor.text(), "alpha two");
  EXPECT_EQ(screen.line(0), "(search: alp) alpha two");
  type(ctrl('R'));
  EXPECT_EQ(editor.text(), "alpha one");
  type("z");
  EXPECT_EQ(screen.line(0), "(no match, search: alpz) alpha one");
  type(ctrl('H'));
  EXPECT_EQ(editor.text(), "alpha two");
  EXPECT_EQ(type("\r"), Event::submit);
  editor.begin("> ", "  ");
  type("kept" + ctrl('R') + "beta" + ctrl('G'));
  EXPECT_EQ(marked(), "kept|");
}

TEST_F(LineEditorTest, clears_the_screen_on_request) {
  screen.write("old\r\n");
  type("abc" + ctrl('L'));
  EXPECT_EQ(screen.line(0), "> abc");
  EXPECT_EQ(screen.column(), 5);
}

// Whatever is typed: the text is valid UTF-8, the cursor stands on a cluster's border, and the drawing agrees with it.
TEST(LineEditorProperty, any_bytes_leave_a_sound_state) {
  History history;
  history.add("old entry");
  history.add("\xE6\x97\xA5\nx");
  const std::vector<std::string> pieces = {"a",
                                           "b ",
                                           "\xE6\x97\xA5",
                                           "e\xCC\x81",
                                           std::string(kUp),
                                           std::string(kDown),
                                           std::string(kLeft),
                                           std::string(kRight),
                                           "\x1b[H",
                                           "\x1b[F",
                                           "\x1b[3~",
                                           "\x1b\r",
                                           "\x1b"
                                           "b",
                                           "\x1b"
                                           "d",
                                           std::string(kPaste) + "p\nq" + std::string(kPasted),
                                           "\t",
                                           "\xFF",
                                           "\xE2\x82"};
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int columns = 8 + static_cast<int>(random() % 20), rows = 3 + static_cast<int>(random() % 5);
    LineEditor editor(history);
    Screen screen(columns, rows);
    editor.resize(columns, rows);
    editor.begin("> ", "  ");
    screen.write(editor.render());
    for (int step = 0; step < 60; ++step) {
      std::string bytes = pieces[random() % pieces.size()];
      if (random() % 3 == 0) bytes = static_cast<char>(1 + random() % 30);
      for (const char c : bytes) editor.feed(c);
      ASSERT_NO_THROW(screen.write(editor.render())) << seed;
      ASSERT_EQ(repaired(editor.text()), editor.text()) << seed;
      ASSERT_LE(editor.cursor(), editor.text().size()) << seed;
      bool on_border = editor.cursor() == editor.text().size();
      for (const Cluster& cluster : clusters(editor.text())) on_border |= cluster.begin == editor.cursor();
      ASSERT_TRUE(on_border) << seed << " at " << step;
      ASSERT_LT(screen.row(), rows) << seed;
      ASSERT_LT(screen.column(), columns) << seed;
    }
  }
}

}  // namespace
}  // namespace hearth::cli
