#include "cli/history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_dir.h"

namespace hearth::cli {
namespace {
namespace fs = std::filesystem;
using test::TempDir;

TEST(History, survives_a_restart) {
  const TempDir folder;
  const fs::path file = folder.path() / "state/run_history";
  {
    History history(file);
    history.add("one");
    history.add("one");  // not twice in a row
    history.add("  ");
    history.add("two\nlines \\n \\ \xC3\xA9");
    EXPECT_EQ(history.last_error(), "");
  }
  const History again(file);
  EXPECT_EQ(again.entries(), (std::vector<std::string>{"one", "two\nlines \\n \\ \xC3\xA9"}));
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(History, is_bounded) {
  const TempDir folder;
  const fs::path file = folder.path() / "h";
  {
    History history(file);
    for (int i = 0; i < 2500; ++i) history.add(std::to_string(i));
    EXPECT_EQ(history.entries().size(), History::kEntriesMax);
    EXPECT_EQ(history.entries().back(), "2499");
  }
  const History again(file);
  EXPECT_EQ(again.entries().size(), History::kEntriesMax);
  EXPECT_EQ(again.entries().front(), "1500");
  const std::string text = test::read_bytes(file);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 2000);
}

TEST(History, bad_files_do_not_stop_a_chat) {
  const TempDir folder;
  folder.write("h", "ok\n\xFF\xFE\n\n\\");
  History history(folder.path() / "h");
  EXPECT_EQ(history.entries(), (std::vector<std::string>{"ok", "\xEF\xBF\xBD\xEF\xBF\xBD", "\\"}));
  folder.write("file", "x");
  History blocked(folder.path() / "file/h");
  blocked.add("x");
  EXPECT_EQ(blocked.entries().size(), 1u);
  EXPECT_NE(blocked.last_error(), "");
}

}  // namespace
}  // namespace hearth::cli
