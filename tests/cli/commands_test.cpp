// Properties of the command table, and of the texts made from it.
#include "cli/command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/args.h"
#include "cli/completion.h"
#include "cli/context.h"
#include "cli/foreign_words.h"
#include "cli/help.h"
#include "cli/text_width.h"
#include "cli/version.h"
#include "hub/fixtures.h"

namespace hearth::cli {
namespace {

std::vector<Flag> all_flags(const Command& command) {
  std::vector<Flag> flags(command.flags.begin(), command.flags.end());
  for (const Flag& flag : common_flags())
    if (command.json || flag.name != "json") flags.push_back(flag);
  return flags;
}

TEST(Commands, names_and_spellings_are_unique) {
  std::set<std::string> verbs;
  for (const Command* command : commands()) {
    EXPECT_TRUE(verbs.insert(std::string(command->name)).second) << command->name;
    for (const std::string& alias : split_words(command->aliases)) EXPECT_TRUE(verbs.insert(alias).second) << alias;
    std::set<std::string> spellings;
    for (const Flag& flag : all_flags(*command)) {
      EXPECT_TRUE(spellings.insert("--" + std::string(flag.name)).second) << command->name << " " << flag.name;
      for (const std::string& alias : split_words(flag.aliases))
        EXPECT_TRUE(spellings.insert(alias).second) << command->name << " " << alias;
    }
  }
}

TEST(Commands, words_of_other_programs_lead_to_verbs_that_exist) {
  std::set<std::string> verbs, words;
  for (const Command* command : commands()) {
    verbs.insert(std::string(command->name));
    for (const std::string& alias : split_words(command->aliases)) verbs.insert(alias);
  }
  for (const ForeignVerb& row : foreign_verbs()) {
    for (const std::string& word : split_words(row.words)) {
      EXPECT_FALSE(verbs.contains(word)) << word << " is a verb of ours";
      EXPECT_TRUE(words.insert(word).second) << word << " stands there twice";
      EXPECT_EQ(foreign_hint(word), row.hint);
    }
    // What stands as a command in the hint: "hearth VERB MODEL", "hearth VERB --flag", and the flags behind it.
    const std::vector<std::string> said = split_words(row.hint);
    const Command* named = nullptr;
    for (size_t i = 0; i < said.size(); ++i) {
      if (i > 0 && said[i - 1] == "hearth")
        for (const Command* command : shown_commands())
          if (command->name == said[i]) named = command;
      if (!said[i].starts_with("--") || said[i] == "--json" || !named) continue;
      const std::string flag = said[i].substr(2);
      EXPECT_TRUE(std::any_of(named->flags.begin(), named->flags.end(), [&](const Flag& f) { return f.name == flag; }))
          << named->name << " has no " << said[i];
    }
  }
  EXPECT_FALSE(foreign_hint("frobnicate"));
}

TEST(Commands, every_row_is_complete_and_its_defaults_are_legal) {
  for (const Command* command : commands()) {
    EXPECT_NE(command->run, nullptr) << command->name;
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_LE(command->summary.size(), 60u) << command->name;
    for (const Flag& flag : all_flags(*command)) {
      EXPECT_FALSE(flag.help.empty()) << command->name << " " << flag.name;
      EXPECT_EQ(flag.value.empty(), flag.kind == ValueKind::none) << command->name << " " << flag.name;
      EXPECT_TRUE(flag.fallback.empty() || flag.kind != ValueKind::none) << command->name << " " << flag.name;
      if (!flag.fallback.empty()) {
        EXPECT_NO_THROW(check_value(flag, std::string(flag.fallback), flag.name));
      }
    }
    bool optional = false;
    for (const Positional& positional : command->positionals) {
      EXPECT_FALSE(optional && positional.required) << command->name;
      EXPECT_TRUE(!positional.repeat || &positional == &command->positionals.back()) << command->name;
      optional |= !positional.required;
    }
  }
}

TEST(Commands, help_fits_80_columns_and_names_every_flag) {
  std::vector<std::string> texts = {help_overview()};
  for (const Command* command : commands()) {
    texts.push_back(help_of(*command));
    for (const Flag& flag : all_flags(*command))
      EXPECT_NE(texts.back().find("--" + std::string(flag.name)), std::string::npos)
          << command->name << " " << flag.name;
  }
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 80) << line;
  }
}

TEST(Commands, completions_name_every_verb_and_flag) {
  for (const std::string& script : {bash_completion(), zsh_completion(), fish_completion()})
    for (const Command* command : shown_commands()) {
      EXPECT_NE(script.find(command->name), std::string::npos) << command->name;
      for (const Flag& flag : all_flags(*command)) EXPECT_NE(script.find(flag.name), std::string::npos) << flag.name;
    }
}

TEST(Commands, hidden_ones_stand_in_no_text_for_people) {
  int hidden = 0;
  for (const Command* command : commands()) {
    if (!command->hidden) continue;
    ++hidden;
    for (const std::string& text : {help_overview(), bash_completion(), zsh_completion(), fish_completion()})
      EXPECT_EQ(text.find(command->name), std::string::npos) << command->name;
  }
  EXPECT_GT(hidden, 0);
}

TEST(Commands, the_version_is_that_of_the_build) {
  std::ostringstream cmake;
  cmake << std::ifstream(std::string(HEARTH_TESTS_DIR) + "/../CMakeLists.txt").rdbuf();
  EXPECT_NE(cmake.str().find("project(hearth VERSION " + std::string(kVersionText) + " "), std::string::npos);
}

TEST(Color, follows_flag_then_environment_then_terminal) {
  using test::fixed_env;
  EXPECT_TRUE(use_color("always", fixed_env({{"NO_COLOR", "1"}}), false));
  EXPECT_FALSE(use_color("never", fixed_env({{"CLICOLOR_FORCE", "1"}}), true));
  EXPECT_FALSE(use_color("auto", fixed_env({{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}}), true));
  EXPECT_TRUE(use_color("auto", fixed_env({{"NO_COLOR", ""}}), true));
  EXPECT_TRUE(use_color("auto", fixed_env({{"CLICOLOR_FORCE", "1"}}), false));
  EXPECT_FALSE(use_color("auto", fixed_env({{"CLICOLOR_FORCE", "0"}}), false));
  EXPECT_FALSE(use_color("auto", fixed_env({{"TERM", "dumb"}}), true));
  EXPECT_FALSE(use_color("auto", fixed_env({}), false));
}

}  // namespace
}  // namespace hearth::cli
