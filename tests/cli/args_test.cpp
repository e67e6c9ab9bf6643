#include "cli/args.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/fixtures.h"

namespace hearth::cli {
namespace {
using test::fixed_env;

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a model"},
    {.name = "PROMPT", .help = "text", .required = false, .repeat = true},
};
constexpr Flag kFlags[] = {
    {.name = "max-tokens",
     .kind = ValueKind::integer,
     .value = "N",
     .fallback = "256",
     .help = "tokens",
     .aliases = "-n --predict",
     .min = 0,
     .max = 1000},
    {.name = "temperature", .kind = ValueKind::number, .value = "T", .help = "t", .min = 0},
    {.name = "prompt", .kind = ValueKind::text, .value = "P", .help = "p", .aliases = "-p"},
    {.name = "stop", .kind = ValueKind::text, .value = "S", .help = "s", .repeat = true},
    {.name = "name", .kind = ValueKind::text, .value = "NAME", .help = "n", .repeat = true, .filled = true},
    {.name = "threads",
     .kind = ValueKind::integer,
     .value = "N",
     .help = "t",
     .aliases = "-t",
     .min = 1,
     .foreign_env = "OMP_NUM_THREADS"},
    {.name = "budget", .kind = ValueKind::size, .value = "SIZE", .help = "b"},
    {.name = "kind", .kind = ValueKind::choice, .value = "red|green", .fallback = "red", .help = "k"},
    {.name = "raw", .help = "r"},
};
const Command kTest = {.name = "test",
                       .aliases = "",
                       .summary = "s",
                       .details = "",
                       .positionals = kPositionals,
                       .flags = kFlags,
                       .run = nullptr};

Args args_of(std::vector<std::string> words, const hub::Env& env = fixed_env({}), const Settings& settings = {}) {
  return resolve(kTest, parse_words(kTest, words), env, settings);
}

std::string failure(std::vector<std::string> words, const hub::Env& env = fixed_env({}),
                    const Settings& settings = {}) {
  try {
    args_of(std::move(words), env, settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "accepted";
}

#define EXPECT_FAILURE(part, ...) EXPECT_NE(failure(__VA_ARGS__).find(part), std::string::npos) << failure(__VA_ARGS__)

TEST(Args, flags_in_every_spelling) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"m", "--max-tokens", "7"}, {"m", "--max-tokens=7"}, {"-n", "7", "m"}, {"-n7", "m"}, {"--predict=7", "m"}})
    EXPECT_EQ(args_of(words).integer("max-tokens"), 7);
  EXPECT_EQ(args_of({"m"}).integer("max-tokens"), 256);
  EXPECT_EQ(args_of({"m", "-n", "1", "-n", "2"}).integer("max-tokens"), 2);  // the last one counts
  EXPECT_TRUE(args_of({"m", "--raw", "-v"}).on("raw"));
  EXPECT_FALSE(args_of({"m", "--raw=false"}).on("raw"));
  EXPECT_EQ(args_of({"m", "--stop", "a", "--stop", ""}).texts("stop"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(args_of({"m", "--budget", "2GiB"}).bytes("budget"), int64_t{2} << 30);
}

TEST(Args, the_model_in_the_spellings_of_other_tools) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"org/m", "hi"},
                                                                                     {"-m", "org/m", "hi"},
                                                                                     {"hi", "--model", "org/m"},
                                                                                     {"-hf", "org/m", "hi"},
                                                                                     {"hi", "-hf=org/m"}}) {
    EXPECT_EQ(args_of(words).positional("MODEL"), "org/m");
    EXPECT_EQ(args_of(words).positional("PROMPT"), "hi");
  }
}

TEST(Args, text_passes_through_untouched) {
  EXPECT_EQ(args_of({"m", "[INST] a,b [/INST]", "-"}).positionals("PROMPT"),
            (std::vector<std::string>{"[INST] a,b [/INST]", "-"}));
  EXPECT_EQ(args_of({"m", "-p", "[a,b]"}).text("prompt"), "[a,b]");
  EXPECT_EQ(args_of({"m", "-p", "-x --raw"}).text("prompt"), "-x --raw");
  EXPECT_EQ(args_of({"m", "-p", ""}).text("prompt"), "");
  EXPECT_EQ(args_of({"m", "--", "--raw", "-n"}).positionals("PROMPT"), (std::vector<std::string>{"--raw", "-n"}));
  EXPECT_FALSE(args_of({"m", "--", "--raw"}).on("raw"));
  EXPECT_EQ(args_of({"m", "-p", "a\nb\xC3\xA9\xFF"}).text("prompt"), "a\nb\xC3\xA9\xFF");
}

TEST(Args, failures_name_flag_value_and_range) {
  EXPECT_FAILURE("test needs MODEL", {});
  EXPECT_FAILURE("did you mean --max-tokens?", {"m", "--max-token", "3"});
  EXPECT_FAILURE("has no flag --zzzzzzz", {"m", "--zzzzzzz"});
  EXPECT_FAILURE("has no flag -x", {"m", "-x"});
  EXPECT_FAILURE("--max-tokens is '-3': it must be an integer from 0 to 1000", {"m", "-n", "-3"});
  EXPECT_FAILURE("an integer", {"m", "-n", "1.5"});
  EXPECT_FAILURE("--temperature is 'hot': it must be a number of at least 0", {"m", "--temperature", "hot"});
  EXPECT_FAILURE("a size such as", {"m", "--budget", "much"});
  EXPECT_FAILURE("did you mean green?", {"m", "--kind", "gren"});
  EXPECT_FAILURE("--raw", {"m", "--raw=maybe"});
  EXPECT_FAILURE("max-tokens", {"m", "--max-tokens"});
}

TEST(Args, the_environment_stands_below_the_flag) {
  const auto env = fixed_env({{"HEARTH_MAX_TOKENS", "5"}, {"OMP_NUM_THREADS", "3"}, {"HEARTH_RAW", "1"}});
  EXPECT_EQ(args_of({"m"}, env).integer("max-tokens"), 5);
  EXPECT_EQ(args_of({"m"}, env).origin("max-tokens"), Origin::environment);
  EXPECT_EQ(args_of({"m", "-n", "6"}, env).integer("max-tokens"), 6);
  EXPECT_EQ(args_of({"m"}, env).integer("threads"), 3);
  EXPECT_TRUE(args_of({"m"}, env).on("raw"));
  const Args both = args_of({"m"}, fixed_env({{"HEARTH_THREADS", "2"}, {"OMP_NUM_THREADS", "3"}}));
  EXPECT_EQ(both.integer("threads"), 2);
  ASSERT_EQ(both.notes().size(), 1u);
  EXPECT_EQ(both.notes()[0], "HEARTH_THREADS=2 is used, OMP_NUM_THREADS=3 is not");
  for (const char* list : {"4,3", "4", " 4 , 3", "4,"})
    EXPECT_EQ(args_of({"m"}, fixed_env({{"OMP_NUM_THREADS", list}})).integer("threads"), 4) << list;
  for (const char* none : {"x,3", ",3", " "})
    EXPECT_FAILURE("OMP_NUM_THREADS is '", {"m"}, fixed_env({{"OMP_NUM_THREADS", none}}));
  EXPECT_FAILURE("HEARTH_THREADS is '4,3'", {"m"}, fixed_env({{"HEARTH_THREADS", "4,3"}}));
  EXPECT_FAILURE("HEARTH_MAX_TOKENS is 'x'", {"m"}, fixed_env({{"HEARTH_MAX_TOKENS", "x"}}));
}

Settings settings_of(const std::string& project, const std::string& user) {
  return {{"hearth.toml", hub::parse_toml(project, "hearth.toml")},
          {"config.toml", hub::parse_toml(user, "config.toml")}};
}

TEST(Args, files_stand_below_the_environment) {
  const Settings settings = settings_of("max_tokens = 10\n[test]\nmax-tokens = 11\n[other]\ntemperature = 9\n",
                                        "max-tokens = 20\ntemperature = 0.5\nstop = [\"a\", \"b\"]\nraw = true\n");
  const Args args = args_of({"m"}, fixed_env({}), settings);
  EXPECT_EQ(args.integer("max-tokens"), 11);  // the table of the verb, in the nearer file
  EXPECT_EQ(args.origin("max-tokens"), Origin::project_file);
  EXPECT_EQ(args.values().find("max-tokens")->second.where, "hearth.toml:3");
  EXPECT_EQ(args.number("temperature"), 0.5);
  EXPECT_EQ(args.texts("stop").size(), 2u);
  EXPECT_TRUE(args.on("raw"));
  EXPECT_EQ(args_of({"m"}, fixed_env({{"HEARTH_MAX_TOKENS", "5"}}), settings).integer("max-tokens"), 5);
}

TEST(Args, wrong_types_in_files_are_told_by_file_key_and_both_types) {
  const std::pair<const char*, const char*> cases[] = {
      {"max-tokens = \"x\"", "hearth.toml:1: max-tokens: expected an integer, found a string"},
      {"[test]\nmax_tokens = 1.5", "hearth.toml:2: max_tokens: expected an integer, found 1.5"},
      {"max-tokens = [1]", "hearth.toml:1: max-tokens: expected an integer, found an array"},
      {"max-tokens = true", "hearth.toml:1: max-tokens: expected an integer, found a boolean"},
      {"max-tokens = 5000", "hearth.toml:1: max-tokens is '5000': it must be an integer from 0 to 1000"},
      {"temperature = \"0.5\"", "hearth.toml:1: temperature: expected a number, found a string"},
      {"temperature = -1", "hearth.toml:1: temperature is '-1': it must be a number of at least 0"},
      {"\nraw = 1", "hearth.toml:2: raw: expected true or false, found 1"},
      {"prompt = 1", "hearth.toml:1: prompt: expected a string, found 1"},
      {"stop = [\"a\", 2]", "hearth.toml:1: stop: expected a string or an array of those, found 2"},
      {"stop = false", "hearth.toml:1: stop: expected a string or an array of those, found a boolean"},
      {"kind = 1", "hearth.toml:1: kind: expected a string, found 1"},
      {"kind = \"gren\"", "hearth.toml:1: kind is 'gren': it must be one of red, green; did you mean green?"},
      {"budget = false",
       "hearth.toml:1: budget: expected a size (a number of bytes, or a string such as \"4GB\"), "
       "found a boolean"},
      {"budget = \"much\"", "hearth.toml:1: budget is 'much': it must be a size such as 512MB, 4GB or 2GiB"},
  };
  for (const auto& [text, sentence] : cases)
    EXPECT_EQ(failure({"m"}, fixed_env({}), settings_of(text, "")), sentence) << text;
  EXPECT_EQ(failure({"m"}, fixed_env({}), settings_of("", "raw = 1")),
            "config.toml:1: raw: expected true or false, found 1");
  EXPECT_EQ(args_of({"m"}, fixed_env({}), settings_of("budget = 1000", "")).bytes("budget"), 1000);
}

TEST(Args, an_empty_text_is_refused_where_it_says_nothing) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"m", "--name", ""}, {"m", "--name="}, {"m", "--name", "a", "--name", ""}})
    EXPECT_EQ(failure(words), "--name is empty, expected NAME");
  EXPECT_EQ(failure({"m"}, fixed_env({{"HEARTH_NAME", ""}})), "HEARTH_NAME is empty, expected NAME");
  for (const char* text : {"name = \"\"", "name = [\"a\", \"\"]"})
    EXPECT_EQ(failure({"m"}, fixed_env({}), settings_of(text, "")), "hearth.toml:1: name is empty, expected NAME");
  EXPECT_EQ(failure({""}), "MODEL is empty, expected a name or a path");
  EXPECT_EQ(failure({"-m", ""}), "MODEL is empty, expected a name or a path");
  EXPECT_EQ(args_of({"m", ""}).positional("PROMPT"), "") << "a prompt may be";
}

TEST(Settings, unknown_keys_are_told_with_the_nearest_name) {
  const SettingsFile file{
      "hearth.toml",
      hub::parse_toml("quite = true\ncolor = \"never\"\n[ls]\nmax_size = \"1GB\"\nx = 1\n[lss]\ny = 1", "t")};
  const std::vector<std::string> sentences = unknown_settings(file);
  ASSERT_EQ(sentences.size(), 3u);
  EXPECT_EQ(sentences[0], "hearth.toml:1: unknown setting 'quite'; did you mean quiet?");
  EXPECT_EQ(sentences[1].find("hearth.toml:5: unknown setting 'x'"), 0u);
  EXPECT_EQ(sentences[2], "hearth.toml:7: unknown table 'lss'; did you mean ls?");
}

TEST(Parse, a_command_may_pass_words_on) {
  Command command = kTest;
  command.passes_on = true;
  const auto words_of = [&](std::vector<std::string> words) { return parse_words(command, words); };
  const RawArgs raw = words_of({"--max-tokens", "3", "--raw", "client", "-p", "--unknown", "--", "--help"});
  EXPECT_EQ(raw.positionals, (std::vector<std::string>{"client", "-p", "--unknown", "--", "--help"}));
  EXPECT_EQ(raw.flags.at("max-tokens"), std::vector<std::string>{"3"});
  EXPECT_FALSE(raw.flags.contains("prompt"));
  EXPECT_FALSE(raw.help);
  EXPECT_EQ(words_of({"client", "--", "-p", "--"}).positionals, (std::vector<std::string>{"client", "-p", "--"}));
  EXPECT_EQ(words_of({"--", "client", "-p"}).positionals, (std::vector<std::string>{"client", "-p"}));
  EXPECT_EQ(words_of({"--max-tokens=3", "client"}).positionals, std::vector<std::string>{"client"});
  EXPECT_TRUE(words_of({"--help"}).help);
  EXPECT_THROW(words_of({"--unknown", "client"}), Error);
}

}  // namespace
}  // namespace hearth::cli
