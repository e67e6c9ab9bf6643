#include "hub/repo.h"

#include <gtest/gtest.h>

#include "hub/paths.h"
#include "hub/fixtures.h"
#include "support/temp_dir.h"

namespace hearth::hub {
namespace {
namespace fs = std::filesystem;
using test::TempDir;

TEST(Repo, names_and_folders) {
  for (const char* good : {"org/name", "gpt2", "a-b/c.d_e", "Qwen/Qwen2.5-0.5B"}) {
    EXPECT_TRUE(is_repo_name(good)) << good;
    EXPECT_EQ(repo_of_folder(repo_folder(good)), good);
  }
  for (const char* bad :
       {"", "/", "a/", "/a", "a/b/c", "a--b", "..", "a/..", "-a", "a-", ".a/b", "a b", "a/b:c", "a\n"})
    EXPECT_FALSE(is_repo_name(bad)) << bad;
  EXPECT_FALSE(is_repo_name(std::string(97, 'a')));
  EXPECT_EQ(repo_of_folder("datasets--a--b"), std::nullopt);
  EXPECT_EQ(repo_of_folder(".locks"), std::nullopt);
}

TEST(Repo, paths_inside_a_repository) {
  for (const char* good : {"a", "a/b.json", "d\xC3\xA9j\xC3\xA0", "a b"}) EXPECT_TRUE(is_repo_path(good)) << good;
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a\\b", "a\nb", "./a"})
    EXPECT_FALSE(is_repo_path(bad)) << bad;
  EXPECT_FALSE(is_repo_path(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_repo_path(std::string(256, 'a')));
}

std::string revision(char c) { return std::string(40, c); }

TEST(Repo, reads_links_of_our_shape_alone) {
  const TempDir folder;
  const std::string blob = std::string(64, 'b');
  folder.write("models--o--n/blobs/" + blob, "1234");
  folder.write("secret", "x");
  const fs::path snapshot = folder.path() / "models--o--n/snapshots" / revision('1');
  fs::create_directories(snapshot / "sub");
  fs::create_symlink("../../blobs/" + blob, snapshot / "m.gguf");
  fs::create_symlink("../../../blobs/" + blob, snapshot / "sub/deep.json");
  fs::create_symlink("../../blobs/" + blob, snapshot / "sub/shallow.json");
  fs::create_symlink("../../../secret", snapshot / "escape.gguf");
  fs::create_symlink(folder.path() / "secret", snapshot / "absolute.gguf");
  fs::create_symlink("../../blobs/../../secret", snapshot / "dots.gguf");
  const auto snapshots = read_snapshots(folder.path(), "o/n");
  ASSERT_EQ(snapshots.size(), 1u);
  ASSERT_EQ(snapshots[0].files.size(), 2u);
  EXPECT_EQ(snapshots[0].files[0].path, "m.gguf");
  EXPECT_EQ(snapshots[0].files[1].path, "sub/deep.json");
  EXPECT_EQ(snapshots[0].bytes, 8);
  EXPECT_EQ(snapshots[0].problem, "");
  EXPECT_EQ(snapshots[0].format, ModelFormat::gguf);
}

TEST(Repo, says_what_an_incomplete_snapshot_lacks) {
  const TempDir folder;
  const std::string root = "models--o--n/snapshots/" + revision('1') + "/";
  folder.write(root + "config.json", "{}");
  folder.write(root + "model-00001-of-00002.safetensors", "x");
  folder.write(root + "model.safetensors.index.json", R"({"weight_map": {"a": "model-00002-of-00002.safetensors"}})");
  auto snapshots = read_snapshots(folder.path(), "o/n");
  ASSERT_EQ(snapshots.size(), 1u);
  EXPECT_EQ(snapshots[0].format, ModelFormat::safetensors);
  EXPECT_EQ(snapshots[0].problem, "model-00002-of-00002.safetensors is absent");

  fs::create_directories(folder.path() / "models--o--m/blobs");
  const fs::path other = folder.path() / "models--o--m/snapshots" / revision('2');
  fs::create_directories(other);
  fs::create_symlink("../../blobs/" + std::string(64, 'c'), other / "m.gguf");
  snapshots = read_snapshots(folder.path(), "o/m");
  ASSERT_EQ(snapshots.size(), 1u);
  EXPECT_EQ(snapshots[0].problem, "the blob of m.gguf is absent");
  EXPECT_EQ(snapshots[0].format, ModelFormat::gguf) << "a model, though an incomplete one: it is listed and named";
}

TEST(Repo, canonical_is_main_else_the_newest) {
  const TempDir folder;
  const std::string root = "models--o--n/snapshots/";
  folder.write(root + revision('1') + "/m.gguf", "x");
  folder.write(root + revision('2') + "/m.gguf", "x");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder.path() / (root + revision('1')), now);
  fs::last_write_time(folder.path() / (root + revision('2')), now - std::chrono::hours(1));
  const auto snapshots = read_snapshots(folder.path(), "o/n");
  EXPECT_EQ(canonical(folder.path(), snapshots)->revision, revision('1'));
  folder.write("models--o--n/refs/main", revision('2') + "\n");
  EXPECT_EQ(canonical(folder.path(), snapshots)->revision, revision('2'));
  EXPECT_EQ(read_ref(folder.path(), "o/n", "../main"), std::nullopt);
  EXPECT_EQ(canonical(folder.path(), {}), nullptr);
}

TEST(Repo, ggufs_to_choose_from) {
  Snapshot snapshot;
  for (const char* name : {"a-Q4.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "mmproj-a.gguf", "x.json"})
    snapshot.files.push_back({name, "", 1});
  EXPECT_EQ(snapshot.ggufs(), (std::vector<std::string>{"a-Q4.gguf", "b-00001-of-00002.gguf"}));
}

TEST(Paths, follow_the_environment) {
  using test::fixed_env;
  EXPECT_EQ(hub_cache(fixed_env({{"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/h"}, {"HOME", "/u"}})), "/c");
  EXPECT_EQ(hub_cache(fixed_env({{"HF_HUB_CACHE", ""}, {"HF_HOME", "/h"}, {"HOME", "/u"}})), "/h/hub");
  EXPECT_EQ(hub_cache(fixed_env({{"HOME", "/u"}})), "/u/.cache/huggingface/hub");
  EXPECT_EQ(hub_cache(fixed_env({{"HF_HOME", "~/x"}, {"HOME", "/u"}})), "/u/x/hub");
  EXPECT_EQ(config_folder(fixed_env({{"XDG_CONFIG_HOME", "/x"}})), "/x/hearth");
  EXPECT_EQ(state_folder(fixed_env({{"XDG_STATE_HOME", "relative"}, {"HOME", "/u"}})), "/u/.local/state/hearth");
}

}  // namespace
}  // namespace hearth::hub
