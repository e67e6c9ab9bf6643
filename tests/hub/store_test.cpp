#include "hub/store.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/fixtures.h"
#include "hub/local_models.h"
#include "support/outcome.h"
#include "support/temp_dir.h"
#include "support/unprivileged.h"

namespace hearth::hub {
namespace {
namespace fs = std::filesystem;
using test::fixed_env;
using test::TempDir;
using test::tiny_gguf;

class StoreTest : public ::testing::Test {
 protected:
  Store store() const {
    return Store(folder.path() / "hub", folder.path() / "config", fixed_env({{"HOME", "/nowhere"}}));
  }
  void add(const std::string& repo, char revision, const std::vector<std::string>& files) const {
    for (const std::string& file : files)
      folder.write("hub/" + repo_folder(repo) + "/snapshots/" + std::string(40, revision) + "/" + file, tiny_gguf("x"));
  }
  // Kind and sentence of the failure of find(name).
  std::pair<ErrorKind, std::string> failure(const std::string& name) const {
    try {
      store().find(name);
    } catch (const Error& error) {
      return {error.kind(), error.what()};
    }
    return {ErrorKind::busy, "found"};
  }
  void expect_failure(const std::string& name, ErrorKind kind, const std::string& part) const {
    const auto [found, sentence] = failure(name);
    EXPECT_EQ(found, kind) << name << ": " << sentence;
    EXPECT_NE(sentence.find(part), std::string::npos) << name << ": " << sentence;
  }
  TempDir folder;
};

TEST_F(StoreTest, finds_paths_first) {
  const fs::path file = folder.write("m.gguf", tiny_gguf("x"));
  const fs::path no_suffix = folder.write("blob", tiny_gguf("x"));
  EXPECT_EQ(store().find(file.string()).path, file);
  EXPECT_EQ(store().find(no_suffix.string()).format, ModelFormat::gguf);
  EXPECT_EQ(store().find(file.string() + ":style").adapter, "style");
  folder.write("dir/config.json", "{}");
  folder.write("dir/model.safetensors", test::tiny_safetensors());
  const FoundModel dir = store().find((folder.path() / "dir").string());
  EXPECT_EQ(dir.format, ModelFormat::safetensors);
  EXPECT_EQ(dir.path, folder.path() / "dir");
  folder.write("one/m.gguf", tiny_gguf("x"));
  EXPECT_EQ(store().find((folder.path() / "one/").string()).path, folder.path() / "one/" / "m.gguf");
  folder.write("two/a.gguf", "x");
  folder.write("two/b.gguf", "x");
  expect_failure((folder.path() / "two").string(), ErrorKind::not_found, "2 .gguf files");
  folder.write("text.md", "hello");
  expect_failure((folder.path() / "text.md").string(), ErrorKind::invalid_argument, "does not begin with GGUF");
  expect_failure((folder.path() / "dir/model.safetensors").string(), ErrorKind::invalid_argument, "name its folder");
  expect_failure((folder.path() / "mm.gguf").string(), ErrorKind::not_found, "m.gguf");
  fs::create_directories(folder.path() / "empty");
  expect_failure((folder.path() / "empty").string(), ErrorKind::invalid_argument, "holds no model");
}

TEST_F(StoreTest, finds_names_revisions_and_parts_of_names) {
  add("org/SmolLM2-135M", '1', {"m.gguf"});
  add("org/SmolLM2-135M", '2', {"m.gguf"});
  add("org/Qwen2.5-0.5B", '3', {"m.gguf"});
  add("other/Qwen2.5-1.5B", '4', {"m.gguf"});
  folder.write("hub/models--org--SmolLM2-135M/refs/main", std::string(40, '1'));
  folder.write("hub/models--org--SmolLM2-135M/refs/v2", std::string(40, '2'));
  EXPECT_EQ(store().find("org/SmolLM2-135M").revision, std::string(40, '1'));
  EXPECT_EQ(store().find("org/SmolLM2-135M@v2").revision, std::string(40, '2'));
  EXPECT_EQ(store().find("org/SmolLM2-135M@" + std::string(40, '2')).revision, std::string(40, '2'));
  EXPECT_EQ(store().find("smollm@2222222").revision, std::string(40, '2'));
  EXPECT_EQ(store().find("SMOLLM").repo, "org/SmolLM2-135M");
  EXPECT_EQ(store().find("0.5b").repo, "org/Qwen2.5-0.5B");
  EXPECT_EQ(store().find("0.5b:style").adapter, "style");
  expect_failure("qwen", ErrorKind::not_found, "names 2 models: org/Qwen2.5-0.5B, other/Qwen2.5-1.5B");
  expect_failure("org/SmolLM2-135M@v3", ErrorKind::not_found, "no revision v3");
  expect_failure("org/SmolLM2-135M@222222", ErrorKind::not_found, "no revision");  // six characters are too few
  expect_failure("org/SmolLM2-135M@", ErrorKind::invalid_argument, "'@'");
  expect_failure("smolml", ErrorKind::not_found, "org/SmolLM2-135M");
  expect_failure("zzzzzzzz", ErrorKind::not_found, "there is org/Qwen2.5-0.5B");
  expect_failure("", ErrorKind::invalid_argument, "empty");
  expect_failure("a:", ErrorKind::invalid_argument, "':'");
}

TEST_F(StoreTest, an_empty_store_says_how_to_fill_it) {
  expect_failure("smollm", ErrorKind::not_found, "hearth import FILE.gguf");
  EXPECT_TRUE(store().list().empty());
}

TEST_F(StoreTest, chooses_among_several_files) {
  add("org/many", '1', {"many-Q4_K_M.gguf", "many-Q8_0.gguf", "mmproj-many.gguf"});
  expect_failure("org/many", ErrorKind::not_found, "many-Q4_K_M.gguf, many-Q8_0.gguf");
  EXPECT_EQ(store().find("org/many:q8").path.filename(), "many-Q8_0.gguf");
  EXPECT_EQ(store().find("many:many-Q4_K_M.gguf").name, "org/many:many-Q4_K_M.gguf");
  EXPECT_EQ(store().find("many:q8").adapter, "");
  expect_failure("org/many:Q", ErrorKind::not_found, "several");
  expect_failure("org/many:style", ErrorKind::not_found, "none");
}

TEST_F(StoreTest, follows_aliases_once) {
  add("org/SmolLM2-135M", '1', {"m.gguf"});
  add("org/small", '2', {"m.gguf"});
  const fs::path file = folder.write("m.gguf", tiny_gguf("x"));
  folder.write("config/models.toml",
               "small = \"smollm\"\nlocal = \"" + file.string() +
                   "\"\nloop = \"other\"\nother = \"loop\"\nstyled = \"smollm:style\"\nbad = 3\n");
  EXPECT_EQ(store().find("small").repo, "org/SmolLM2-135M");  // before the part of org/small
  EXPECT_EQ(store().find("local").path, file);
  EXPECT_EQ(store().find("styled").adapter, "style");
  EXPECT_EQ(store().find("small:style").adapter, "style");
  expect_failure("loop", ErrorKind::not_found, "the alias loop");
  expect_failure("bad", ErrorKind::invalid_argument,
                 "models.toml:6: bad: expected a model's name as a string, found a number");
}

TEST_F(StoreTest, a_table_of_a_model_may_name_it_too) {
  add("org/SmolLM2-135M", '1', {"m.gguf"});
  folder.write("config/models.toml", "[\"org/SmolLM2-135M\"]\nalias = \"work\"\ncontext = 4096\n");
  EXPECT_EQ(store().find("work").repo, "org/SmolLM2-135M");
  expect_failure("context", ErrorKind::not_found, "no model 'context'");
}

TEST_F(StoreTest, an_alias_of_two_models_is_refused_where_it_is_asked_for) {
  add("org/one", '1', {"m.gguf"});
  add("org/two", '1', {"m.gguf"});
  folder.write("config/models.toml", "same = \"org/one\"\nwork = \"org/one\"\n[\"org/two\"]\nalias = \"work\"\n");
  expect_failure("work", ErrorKind::invalid_argument,
                 "models.toml:4: alias work: it means org/one already (line 2), and cannot mean org/two too");
  EXPECT_EQ(store().find("same").repo, "org/one");
}

TEST_F(StoreTest, held_aliases_stay_whatever_becomes_of_the_file) {
  add("org/one", '1', {"m.gguf"});
  folder.write("config/models.toml", "work = \"org/one\"\n");
  Store held = store();
  held.hold(read_aliases(held.aliases_file()));
  folder.write("config/models.toml", "work = 3\nother = \"org/one\"\n");
  EXPECT_EQ(held.find("work").repo, "org/one");
  EXPECT_THROW(held.find("other"), UnknownName);
}

TEST_F(StoreTest, what_is_unknown_and_what_is_ambiguous_are_told_apart) {
  add("org/one", '1', {"m.gguf"});
  add("org/ones", '1', {"a-q4.gguf", "b-q4.gguf"});
  EXPECT_THROW(store().find("nothing"), UnknownName);
  for (const char* name : {"org", "org/ones", "org/ones:q4"}) EXPECT_THROW(store().find(name), AmbiguousName) << name;
}

TEST_F(StoreTest, models_are_what_find_gives_by_their_names) {
  add("org/one", '1', {"m.gguf"});
  add("org/several", '1', {"a-Q4_0.gguf", "sub/b-Q8_0.gguf", "mmproj-x.gguf"});
  folder.write("hub/models--org--folder/snapshots/" + std::string(40, '1') + "/config.json", "{}");
  folder.write("hub/models--org--folder/snapshots/" + std::string(40, '1') + "/model.safetensors",
               test::tiny_safetensors());
  add("org/readme-only", '1', {"README.md"});
  const std::vector<FoundModel> models = local_models(store());
  std::vector<std::string> names;
  for (const FoundModel& model : models) {
    names.push_back(model.name);
    const FoundModel found = store().find(model.name);
    EXPECT_EQ(found.path, model.path);
    EXPECT_EQ(found.name, model.name);
    EXPECT_EQ(found.repo, model.repo);
    EXPECT_EQ(found.revision, model.revision);
    EXPECT_EQ(found.format, model.format);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"org/folder", "org/one", "org/several:a-Q4_0.gguf",
                                             "org/several:sub/b-Q8_0.gguf"}));
}

TEST_F(StoreTest, lists_models_only) {
  add("org/b", '1', {"m.gguf"});
  add("org/a", '1', {"m.gguf"});
  add("org/a", '2', {"m.gguf"});
  add("org/readme-only", '1', {"README.md"});
  const auto models = store().list();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].repo, "org/a");
  EXPECT_EQ(models[1].repo, "org/b");
  EXPECT_EQ(store().list(true).size(), 3u);
  expect_failure("org/readme-only", ErrorKind::invalid_argument, "holds no model");
}

TEST_F(StoreTest, what_cannot_be_read_is_told_and_is_not_absent) {
  add("org/open", '1', {"m.gguf"});
  add("org/shut", '2', {"m.gguf"});
  folder.write("hub/models--org--shut/refs/main", std::string(40, '2'));
  const test::Mode passable(folder.path(), 0755);  // for the other user
  const fs::path root = folder.path() / "hub/models--org--shut", snapshot = root / "snapshots" / std::string(40, '2');
  const auto told = [&](const fs::path& shut, mode_t mode, const fs::path& named) {
    const test::Mode closed(shut, mode);
    const test::Unprivileged nobody;
    const std::string sentence = "cannot read " + named.string() + ": Permission denied";
    EXPECT_EQ(test::outcome([&] { store().find("org/shut"); }), "io: " + sentence);
    EXPECT_EQ(store().find("open").repo, "org/open");  // others are found, by a part of their names too
    const std::vector<Snapshot> models = store().list();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_TRUE(models[0].format && models[0].problem.empty());
    EXPECT_EQ(models[1].repo, "org/shut");
    EXPECT_FALSE(models[1].format);
    EXPECT_EQ(models[1].problem, sentence);
  };
  told(root, 0, root / "snapshots");
  told(root / "snapshots", 0, root / "snapshots");
  told(snapshot, 0, snapshot);
  told(snapshot, 0744, snapshot / "m.gguf");
  told(root / "refs", 0, root / "refs/main");
  told(root / "refs/main", 0, root / "refs/main");
  for (const fs::path& shut : {folder.path() / "hub", folder.path()}) {
    const test::Mode closed(shut, 0);
    const test::Unprivileged nobody;
    for (const std::string& said :
         {test::outcome([&] { store().list(); }), test::outcome([&] { store().find("open"); })})
      EXPECT_TRUE(said.starts_with("io: cannot read ") && said.ends_with("Permission denied")) << said;
  }
}

TEST_F(StoreTest, never_opens_an_incomplete_snapshot) {
  folder.write("hub/models--o--n/snapshots/" + std::string(40, '1') + "/config.json", "{}");
  folder.write("hub/models--o--n/snapshots/" + std::string(40, '1') + "/a.safetensors", "x");
  folder.write("hub/models--o--n/snapshots/" + std::string(40, '1') + "/model.safetensors.index.json",
               R"({"weight_map": {"a": "b.safetensors"}})");
  expect_failure("o/n", ErrorKind::corrupt_file, "b.safetensors is absent");
}

}  // namespace
}  // namespace hearth::hub
