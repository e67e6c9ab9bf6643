// Another default model while the pool runs.
#include <gtest/gtest.h>

#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class ModelsDefault : public ScriptedModels {
 protected:
  // With `a` as the default model.
  ModelsOptions begin(const std::function<void(ModelsOptions&)>& change = {}) {
    ModelsOptions options;
    for (const char* name : {"a", "b"}) write(name, "bytes 600");
    start({"a", "b"}, 1000, [&](ModelsOptions& o) {
      o.default_model = path("a");
      if (change) change(o);
      options = o;
    });
    return options;
  }
};

TEST_F(ModelsDefault, is_loaded_and_pinned_as_at_a_start) {
  ModelsOptions options = begin();
  serve("a");
  EXPECT_TRUE(view("a").pinned && view("a").is_default);
  options.default_model = path("b");
  models_->check(options);
  models_->reload(options);
  EXPECT_EQ(models_->resolve(""), "b");
  EXPECT_TRUE(comes([&] { return is("b", ModelState::ready) && is("a", ModelState::absent); }))
      << "there is room for one";
  EXPECT_TRUE(view("b").pinned && view("b").is_default);
  EXPECT_FALSE(view("a").pinned || view("a").is_default);
  EXPECT_EQ(models_->resolve("a"), "a") << "it may still be asked for";
  const int64_t loads = count("load b");
  models_->unload("b");
  EXPECT_TRUE(comes([&] { return is("b", ModelState::absent); }));
  models_->reload(options);
  EXPECT_EQ(models_->resolve(""), "b");
  EXPECT_EQ(count("load b"), loads) << "the same one again is no change";
}

TEST_F(ModelsDefault, that_is_not_there_changes_nothing) {
  ModelsOptions options = begin();
  options.default_model = path("absent");
  EXPECT_THROW(models_->check(options), Error);
  models_->reload(options);  // it went behind the check
  EXPECT_EQ(models_->resolve(""), "a");
  EXPECT_TRUE(view("a").pinned);
}

TEST_F(ModelsDefault, is_the_only_one_where_no_other_may_be_asked_for) {
  ModelsOptions options = begin([](ModelsOptions& o) {
    o.allowed.clear();
    o.only_default = true;
  });
  EXPECT_THROW(models_->resolve("b"), Error);
  options.default_model = path("b");
  models_->reload(options);
  EXPECT_EQ(models_->resolve(""), "b");
  EXPECT_THROW(models_->resolve("a"), Error);
}

}  // namespace
}  // namespace hearth::server
