// docs/cli.md names every verb and every flag of the tables.
#include <gtest/gtest.h>

#include "base/fs.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/help.h"

namespace hearth::cli {
namespace {

// The part of `page` under `heading`, up to the next heading.
std::string section(const std::string& page, const std::string& heading) {
  const size_t begin = page.find("\n" + heading + "\n");
  if (begin == std::string::npos) return {};
  return page.substr(begin, page.find("\n#", begin + 1) - begin);
}

bool names(const std::string& text, const Flag& flag) {
  const std::string start = "`--" + std::string(flag.name);
  return text.find(start + "`") != std::string::npos || text.find(start + " ") != std::string::npos;
}

TEST(Docs, the_command_page_names_every_verb_and_flag) {
  const std::string page = io::real_fs().read_file(HEARTH_TESTS_DIR "/../docs/cli.md", 1 << 20);
  const std::string engine = section(page, "## Engine flags"), sampling = section(page, "## Generation flags"),
                    common = section(page, "## Common flags");
  for (const Flag& flag : common_flags()) EXPECT_TRUE(names(common, flag)) << flag.name;
  for (const Command* command : shown_commands()) {
    const std::string own = section(page, "### " + std::string(command->name));
    EXPECT_FALSE(own.empty()) << command->name;
    for (const Flag& flag : command->flags)
      EXPECT_TRUE(names(own, flag) || names(engine, flag) || names(sampling, flag))
          << command->name << " --" << flag.name;
  }
}

TEST(Docs, the_command_page_names_the_words_of_other_programs) {
  const std::string page = io::real_fs().read_file(HEARTH_TESTS_DIR "/../docs/cli.md", 1 << 20);
  const std::string own = section(page, "### Words of other programs");
  for (const ForeignVerb& row : foreign_verbs())
    for (const std::string& word : split_words(row.words))
      EXPECT_NE(own.find("`" + word + "`"), std::string::npos) << word;
}

}  // namespace
}  // namespace hearth::cli
