// Adapters of the pool's models, with workers that follow a script: what is mounted when, and what outlives what.
#include <gtest/gtest.h>
#include <signal.h>

#include "server/front/scripted_models.h"
#include "support/outcome.h"

namespace hearth::server {
namespace {

class ModelsAdapters : public ScriptedModels {
 protected:
  std::filesystem::path adapter(const std::string& name, const std::string& config = "good") {
    dir_.write("adapters/" + name + "/adapters.safetensors", "");
    return dir_.write("adapters/" + name + "/adapter_config.json", config).parent_path();
  }
  // "ok", or what was wrong.
  std::string mount(const std::string& model, const std::string& name, const std::string& config = "good") {
    MountedAdapter one{.id = name, .files = open_adapter(adapter(name, config)), .facts = {}};
    return wait([&](auto done, auto refused) { models_->mount(model, std::move(one), done, refused); });
  }
  std::string unmount(const std::string& model, const std::string& name) {
    return wait([&](auto done, auto refused) { models_->unmount(model, name, done, refused); });
  }
  std::vector<std::string> mounted() const {
    std::vector<std::string> list;
    for (const AdapterView& view : models_->adapters())
      list.push_back(view.adapter.id + " of " + view.model + (view.is_resident ? "" : " (absent)"));
    return list;
  }
  std::vector<std::string> events_since(size_t begin) const {
    const auto all = events();
    return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.end()};
  }
  using Lines = std::vector<std::string>;

 private:
  template <class Begin>
  std::string wait(const Begin& begin) {
    auto promise = std::make_shared<std::promise<std::string>>();
    begin([promise](const Event* error, const json::Object&) { promise->set_value(error ? error->text : "ok"); },
          [promise](const Refusal& refusal) { promise->set_value(refusal.message); });
    return get(promise->get_future());
  }
};

TEST_F(ModelsAdapters, are_mounted_again_before_a_new_worker_gets_a_request) {
  write("a", "");
  start({"a"});
  EXPECT_EQ(mount("a", "x"), "ok") << "the model is loaded for it";
  EXPECT_EQ(mount("a", "y"), "ok");
  EXPECT_EQ(mounted(), (Lines{"x of a", "y of a"}));
  serve("a");
  const size_t before = events().size();
  std::filesystem::remove_all(dir_.path() / "adapters");  // their files are open
  ::kill(view("a").pid, SIGKILL);
  ASSERT_TRUE(comes([&] { return view("a").restarts == 1; }));
  serve("a");
  EXPECT_EQ(events_since(before), (Lines{"load a", "loaded a", "mount x a", "mount y a", "answer a"}));
  EXPECT_EQ(mounted(), (Lines{"x of a", "y of a"}));
}

TEST_F(ModelsAdapters, belong_to_the_model_while_it_is_not_loaded) {
  write("a", "");
  start({"a"});
  for (const char* name : {"x", "y"}) EXPECT_EQ(mount("a", name), "ok");
  models_->unload("a");
  ASSERT_TRUE(comes([&] { return is("a", ModelState::absent); }));
  EXPECT_EQ(mounted(), (Lines{"x of a (absent)", "y of a (absent)"}));
  EXPECT_EQ(unmount("a", "x"), "ok");
  EXPECT_TRUE(is("a", ModelState::absent)) << "nothing is loaded for that";
  const size_t before = events().size();
  serve("a");
  EXPECT_EQ(events_since(before), (Lines{"load a", "loaded a", "mount y a", "answer a"}));
}

TEST_F(ModelsAdapters, that_cannot_be_mounted_again_are_given_up) {
  write("a", "");
  start({"a"});
  EXPECT_EQ(mount("a", "x"), "ok");
  EXPECT_EQ(mount("a", "y"), "ok");
  EXPECT_EQ(mount("a", "z", "[3, 5] is no shape"), "[3, 5] is no shape");
  EXPECT_EQ(mounted(), (Lines{"x of a", "y of a"}));
  dir_.write("adapters/x/adapter_config.json", "[7] is no shape");  // in place
  serve("a");
  ::kill(view("a").pid, SIGKILL);
  ASSERT_TRUE(comes([&] { return view("a").restarts == 1; }));
  serve("a");
  EXPECT_EQ(mounted(), (Lines{"y of a"}));
}

TEST_F(ModelsAdapters, of_the_start_are_part_of_the_default_model) {
  write("a", "");
  write("b", "");
  start({"b"}, 1000, [&](ModelsOptions& o) {
    o.default_model = path("a");
    o.adapters = {adapter("x"), adapter("y")};
  });
  serve("a");
  serve("b");
  EXPECT_EQ(events(),
            (Lines{"load a", "loaded a", "mount x* a", "mount y a", "answer a", "load b", "loaded b", "answer b"}));
  EXPECT_EQ(test::outcome([&] { unmount("b", "x"); }), "not_found: adapter x is not mounted on b");
}

TEST_F(ModelsAdapters, of_the_start_that_do_not_fit_fail_the_load) {
  write("a", "");
  start({}, 1000, [&](ModelsOptions& o) {
    o.default_model = path("a");
    o.adapters = {adapter("x"), adapter("y", "q_proj is [3, 5]")};
  });
  EXPECT_EQ(get(acquire("a")).refusal.message, "q_proj is [3, 5]");
  models_.reset();
  EXPECT_EQ(test::outcome([&] {
              start({}, 1000, [&](ModelsOptions& o) {
                o.default_model = path("a");
                o.adapters = {dir_.path() / "nowhere"};
              });
            }).substr(0, 9),
            "not_found");
}

TEST_F(ModelsAdapters, that_end_their_worker_do_not_hang_the_load) {
  write("a", "");
  start({}, 1000, [&](ModelsOptions& o) {
    o.default_model = path("a");
    o.adapters = {adapter("x", "die")};
  });
  auto waiting = acquire("a");
  EXPECT_TRUE(comes([&] { return view("a").restarts >= 2; }));
  dir_.write("adapters/x/adapter_config.json", "good");
  EXPECT_TRUE(get(std::move(waiting)).ready);
}

TEST_F(ModelsAdapters, are_unmounted_once) {
  write("a", "");
  start({"a"});
  EXPECT_EQ(mount("a", "x"), "ok");
  EXPECT_EQ(test::outcome([&] { mount("a", "x"); }), "invalid_argument: id: adapter x is mounted already on a");
  EXPECT_EQ(unmount("a", "x"), "ok");
  EXPECT_EQ(test::outcome([&] { unmount("a", "x"); }), "not_found: adapter x is not mounted on a");
  EXPECT_EQ(count("unmount x a"), 1);
  EXPECT_EQ(mount("a", "x"), "ok");
}

TEST_F(ModelsAdapters, may_be_named_with_the_model) {
  write("a", "");
  write("b", "");
  start({"a", "b"}, 1000, [&](ModelsOptions& o) { o.default_model = path("a"); });
  const auto choice = [&](const std::string& name) {
    const ModelChoice c = models_->choose(name);
    return c.id + "|" + c.adapter;
  };
  EXPECT_EQ(choice("a:x"), "a|x");
  EXPECT_EQ(choice("b:x+y"), "b|x+y");
  EXPECT_EQ(choice("default:none"), "a|none");
  EXPECT_EQ(choice("a"), "a|");
  EXPECT_EQ(models_->resolve("b:x"), "b");
  for (const char* name : {"c:x", "a:", ":x", ":"})
    EXPECT_TRUE(test::outcome([&] { models_->choose(name); }).starts_with("not_found")) << name;
}

}  // namespace
}  // namespace hearth::server
