#include "hub/import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "hub/publish.h"
#include "hub/store.h"
#include "hub/fixtures.h"
#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::hub {
namespace {
namespace fs = std::filesystem;
using test::read_bytes;
using test::TempDir;
using test::tiny_gguf;
using test::tiny_safetensors;

std::vector<std::string> tree(const fs::path& root) {
  std::vector<std::string> paths;
  if (fs::exists(root))
    for (const auto& entry : fs::recursive_directory_iterator(root))
      paths.push_back(fs::relative(entry.path(), root).string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

ErrorKind kind_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::busy;
}

TEST(Import, a_file_becomes_blob_snapshot_and_ref) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const fs::path file = folder.write("My model (v1).gguf", tiny_gguf("x"));
  int64_t seen = 0;
  const ImportResult result =
      import_model(cache, file, {.repo = "", .progress = [&](int64_t done, int64_t) { seen = done; }});
  EXPECT_EQ(result.repo, "local/My-model-v1");
  EXPECT_EQ(result.bytes, static_cast<int64_t>(tiny_gguf("x").size()));
  EXPECT_EQ(seen, result.bytes);
  Digest digest(Digest::Kind::sha256);
  digest.add(tiny_gguf("x"));
  const std::string blob = digest.hex();
  const fs::path root = cache / "models--local--My-model-v1";
  EXPECT_EQ(read_bytes(root / "blobs" / blob), tiny_gguf("x"));
  EXPECT_EQ(fs::read_symlink(result.folder / "My model (v1).gguf"), "../../blobs/" + blob);
  EXPECT_EQ(read_bytes(root / "refs/main"), result.revision);
  EXPECT_EQ(result.revision.size(), 40u);
  const Store store(cache, folder.path(), test::fixed_env({}));
  EXPECT_EQ(read_bytes(store.find("my-model").path), tiny_gguf("x"));

  const auto before = tree(cache);
  const ImportResult again = import_model(cache, file, {.repo = ""});
  EXPECT_EQ(again.revision, result.revision);
  EXPECT_EQ(again.bytes_copied, 0);
  EXPECT_EQ(tree(cache), before);
}

TEST(Import, a_gguf_of_any_name_is_found_again) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const Store store(cache, folder.path(), test::fixed_env({}));
  for (const char* name : {"nosuffix", "UP.GGUF", "sha.bin"}) {
    const ImportResult result = import_model(cache, folder.write(name, tiny_gguf(name)), {.repo = ""});
    EXPECT_EQ(read_bytes(store.find(result.repo).path), tiny_gguf(name)) << name;
  }
  EXPECT_EQ(store.list(false).size(), 3u);
  for (const std::string& name : {std::string(255, 'n'), std::string(250, 'm') + ".gguf"}) {
    const ImportResult result = import_model(cache, folder.write(name, tiny_gguf(name)), {.repo = ""});
    EXPECT_EQ(read_bytes(store.find(result.repo).path), tiny_gguf(name)) << name;
  }
  for (const char* name : {"back\\slash.gguf", "tab\t.gguf"})
    EXPECT_EQ(test::outcome([&] { import_model(cache, folder.write(name, tiny_gguf(name)), {.repo = ""}); }),
              "invalid_argument: " + (folder.path() / name).string() + ": its name cannot stand in the store");
}

TEST(Import, a_folder_with_nested_files_and_hub_names) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  folder.write("m/config.json", "{}");
  folder.write("m/empty.txt", "");
  folder.write("m/model.safetensors", tiny_safetensors());
  folder.write("m/onnx/x.json", "[]");
  folder.write("m/.git/HEAD", "x");
  folder.write("m/part.incomplete", "x");
  const ImportResult result = import_model(cache, folder.path() / "m/", {.repo = "o/n"});
  EXPECT_EQ(result.format, ModelFormat::safetensors);
  EXPECT_EQ(result.files, 4);
  // git hash-object of an empty file, and of "{}".
  EXPECT_EQ(fs::read_symlink(result.folder / "empty.txt"), "../../blobs/e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(fs::read_symlink(result.folder / "config.json"), "../../blobs/9e26dfeeb6e641a33dae4961196235bdb965b21b");
  EXPECT_EQ(read_bytes(result.folder / "onnx/x.json"), "[]");
  EXPECT_EQ(read_snapshots(cache, "o/n")[0].problem, "");
}

TEST(Import, a_new_version_moves_main_and_keeps_the_old_snapshot) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const ImportResult first = import_model(cache, folder.write("m.gguf", tiny_gguf("one")), {.repo = "o/n"});
  const ImportResult second = import_model(cache, folder.write("m.gguf", tiny_gguf("two")), {.repo = "o/n"});
  EXPECT_NE(first.revision, second.revision);
  EXPECT_EQ(read_ref(cache, "o/n", "main"), second.revision);
  EXPECT_EQ(read_bytes(first.folder / "m.gguf"), tiny_gguf("one"));
}

TEST(Import, refuses_before_it_writes) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const fs::path good = folder.write("m.gguf", tiny_gguf("x"));
  const fs::path cut = folder.write("cut.gguf", tiny_gguf("x").substr(0, 30));
  const fs::path other = folder.write("other.gguf", "hello");
  folder.write("bad/config.json", "{");
  folder.write("bad/model.safetensors", tiny_safetensors());
  folder.write("lacks/config.json", "{}");
  folder.write("lacks/a.safetensors", tiny_safetensors());
  folder.write("lacks/model.safetensors.index.json", R"({"weight_map": {"x": "b.safetensors"}})");
  folder.write("nothing/README.md", "x");
  using K = ErrorKind;
  EXPECT_EQ(kind_of([&] { import_model(cache, folder.path() / "absent.gguf", {}); }), K::not_found);
  EXPECT_EQ(kind_of([&] { import_model(cache, cut, {}); }), K::corrupt_file);
  EXPECT_EQ(kind_of([&] { import_model(cache, other, {}); }), K::corrupt_file);
  EXPECT_EQ(kind_of([&] { import_model(cache, folder.path() / "bad", {}); }), K::corrupt_file);
  EXPECT_EQ(kind_of([&] { import_model(cache, folder.path() / "lacks", {}); }), K::corrupt_file);
  EXPECT_EQ(kind_of([&] { import_model(cache, folder.path() / "nothing", {}); }), K::invalid_argument);
  for (const char* name : {"x", "a/b/c", "a/..", "a/b c", "../b"})
    EXPECT_EQ(kind_of([&] { import_model(cache, good, {.repo = name}); }), K::invalid_argument) << name;
  EXPECT_FALSE(fs::exists(cache));
}

TEST(Import, a_disk_is_refused_before_all_of_it_is_read) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub", wide = folder.path() / "wide", deep = folder.path() / "deep";
  for (int i = 0; i < 10'001; ++i) folder.write("wide/" + std::to_string(i), "");
  EXPECT_EQ(test::outcome([&] { import_model(cache, wide, {.repo = ""}); }),
            "invalid_argument: " + wide.string() + " is no model's folder: it holds more than 10000 files and folders");
  fs::path inner = deep;
  for (int i = 0; i < 9; ++i) inner /= "d";
  fs::create_directories(inner / "d");
  EXPECT_EQ(test::outcome([&] { import_model(cache, deep, {.repo = ""}); }),
            "invalid_argument: " + deep.string() + " is no model's folder: it is nested deeper than 8 folders, at " +
                inner.string());
  const std::atomic<bool> cancel = true;
  EXPECT_EQ(kind_of([&] { import_model(cache, wide, {.repo = "", .cancel = &cancel}); }), ErrorKind::cancelled);
  EXPECT_FALSE(fs::exists(cache));
}

TEST(Import, what_cannot_be_taken_is_told_of_a_model_alone) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub", dir = folder.path() / "m", link = dir / "a.txt";
  folder.write("m/README.md", "x");
  folder.write("m/back\\slash", "x");
  fs::create_symlink("nowhere", link);
  const auto told = [&] { return test::outcome([&] { import_model(cache, dir, {.repo = ""}); }); };
  EXPECT_EQ(told(), "invalid_argument: " + dir.string() +
                        " holds no model: neither config.json with *.safetensors nor a .gguf file");
  folder.write("m/config.json", "{}");
  folder.write("m/model.safetensors", tiny_safetensors());
  fs::remove(dir / "back\\slash");
  EXPECT_EQ(told(), "not_found: " + link.string() + " is a link to no file");
  fs::remove(link);
  folder.write("m/back\\slash", "x");
  EXPECT_EQ(told(), "invalid_argument: " + dir.string() + " holds a file whose name cannot stand in the store");
  EXPECT_FALSE(fs::exists(cache));
}

TEST(Import, cancelled_or_failed_leaves_nothing) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const fs::path file = folder.write("m.gguf", tiny_gguf("x"));
  const std::atomic<bool> cancel = true;
  EXPECT_EQ(kind_of([&] { import_model(cache, file, {.repo = "o/n", .cancel = &cancel}); }), ErrorKind::cancelled);
  EXPECT_FALSE(fs::exists(cache / "models--o--n"));
  folder.write("file", "x");
  EXPECT_EQ(kind_of([&] { import_model(folder.path() / "file/hub", file, {.repo = "o/n"}); }), ErrorKind::io);
}

TEST(Import, one_writer_a_name_and_temporaries_of_the_dead_go) {
  const TempDir folder;
  const fs::path cache = folder.path() / "hub";
  const fs::path file = folder.write("m.gguf", tiny_gguf("x"));
  import_model(cache, file, {.repo = "o/n"});
  folder.write("hub/models--o--n/blobs/.hearth-1-1.tmp", "half");
  folder.write("hub/models--o--n/snapshots/.hearth-1-2.tmp/link", "half");
  folder.write("hub/models--o--n/refs/.main.1-0.tmp", "half");
  folder.write("hub/models--o--n/blobs/" + std::string(64, 'a') + ".incomplete", "another tool's");
  {
    const RepoLock lock = RepoLock::take(cache, "models--o--n");
    EXPECT_EQ(kind_of([&] { import_model(cache, file, {.repo = "o/n"}); }), ErrorKind::busy);
    EXPECT_EQ(stale_files(cache, Stale::remove), 0);  // their owner lives
  }
  EXPECT_EQ(stale_files(cache, Stale::count), 3);
  import_model(cache, folder.write("other.gguf", tiny_gguf("y")), {.repo = "o/other"});
  EXPECT_EQ(stale_files(cache, Stale::count), 0);
  EXPECT_TRUE(fs::exists(cache / "models--o--n/blobs" / (std::string(64, 'a') + ".incomplete")));
}

TEST(Import, hard_link_shares_the_bytes) {
  const TempDir folder;
  const fs::path file = folder.write("m.gguf", tiny_gguf("x"));
  const ImportResult result = import_model(folder.path() / "hub", file, {.repo = "o/n", .hard_link = true});
  EXPECT_EQ(result.bytes_copied, 0);
  EXPECT_EQ(fs::hard_link_count(file), 2u);
}

TEST(Import, default_names_are_names) {
  for (const char* source :
       {"x.gguf", "/a/b--c..d.gguf", "/a/-.gguf", "/a/\xC3\xA9t\xC3\xA9.gguf", "/a/m-00001-of-00003.gguf", "."})
    EXPECT_TRUE(is_repo_name(default_repo(source))) << source << ": " << default_repo(source);
  EXPECT_EQ(default_repo("/a/m-00001-of-00003.gguf"), "local/m");
  EXPECT_EQ(default_repo("/a/folder/"), "local/folder");
}

}  // namespace
}  // namespace hearth::hub
