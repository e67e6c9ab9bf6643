// Adapters by name: stacks are made when they are first asked for and make room when nobody uses them.
#include "decode/adapter_table.h"

#include <gtest/gtest.h>

#include <set>

#include "decode/scheduler.h"
#include "decode/tiny_engine.h"
#include "model/forward.h"
#include "support/adapter_files.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using test::outcome;

class Table : public ::testing::Test {
 protected:
  void start(int64_t slots, int64_t bytes = 100'000'000) {
    engine_ = tiny_engine({}, {.context = 128,
                               .sequences_max = 4,
                               .prefill_chunk = 64,
                               .gathered_max = 64,
                               .adapter_slots = slots,
                               .adapter_rank_max = 24,
                               .adapter_bytes = bytes});
    table_ = std::make_unique<AdapterTable>(*engine_, "tiny", bytes);
  }
  formats::Adapter adapter(const std::string& id, int64_t R = 8) const {
    return test::random_adapter(model::adapter_linears(engine_->spec()),
                                {.id = id, .R = R, .seed = id.front() * uint64_t{7}});
  }
  void mount(const std::string& id, int64_t R = 8) { table_->mount(adapter(id, R), "digest-" + id); }
  std::string refusal(const std::string& spec) {
    return outcome([&] { table_->choose(spec); });
  }
  std::vector<float> logits(int32_t slot) {
    const std::vector<int32_t> ids = prompt_ids(9);
    Sequence s = engine_->cache().make();
    const StepInput input{&s, ids, 9, slot};
    const std::span<float> got = engine_->step({&input, 1});
    std::vector<float> copy(got.begin(), got.end());
    engine_->cache().free(s);
    return copy;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<AdapterTable> table_;
};

TEST_F(Table, specs_mean_slots_and_spaces) {
  start(8);
  EXPECT_EQ(table_->choose("").slot, kNoAdapter);
  EXPECT_EQ(refusal("a"), "invalid_argument: a is not mounted on tiny; none is");
  mount("a");
  mount("b", 4);
  EXPECT_EQ(refusal("c"), "invalid_argument: c is not mounted on tiny; a, b are");
  EXPECT_EQ(refusal("a+"), "invalid_argument: \"\" is not mounted on tiny; a, b are");
  EXPECT_EQ(refusal("a+none"), "invalid_argument: none is not mounted on tiny; a, b are");
  EXPECT_EQ(refusal("b+a+b"), "invalid_argument: b stands twice in the stack b+a+b");
  const AdapterChoice a = table_->choose("a"), b = table_->choose("b"), both = table_->choose("a+b");
  EXPECT_EQ(a.space, "digest-a");
  EXPECT_EQ(both.space, "digest-a+digest-b");
  EXPECT_EQ(table_->choose("b+a").slot, both.slot);
  EXPECT_EQ((std::set{a.slot, b.slot, both.slot}.size()), 3u);
  EXPECT_EQ(table_->choose("none").slot, kNoAdapter);
  EXPECT_EQ(table_->choose("").space, "");
  table_->set_default("b");
  EXPECT_EQ(table_->choose("").slot, b.slot);
  EXPECT_EQ(table_->choose("none").slot, kNoAdapter);

  const formats::Adapter fa = adapter("a"), fb = adapter("b", 4);
  const formats::Adapter* const parts[] = {&fa, &fb};
  EXPECT_EQ(logits(both.slot), logits(engine_->mount_adapter(parts)));
}

TEST_F(Table, idle_stacks_make_room_oldest_first) {
  start(5);
  for (const char* id : {"a", "b", "c"}) mount(id);
  const AdapterChoice ab = table_->choose("a+b"), bc = table_->choose("b+c");
  table_->choose("a+b");  // b+c is the oldest now
  const std::vector<float> before = logits(ab.slot);
  const AdapterChoice ac = table_->choose("a+c");
  EXPECT_EQ(ac.slot, bc.slot);
  EXPECT_EQ(table_->choose("a+b").slot, ab.slot);
  EXPECT_EQ(logits(ab.slot), before);
  engine_->use_adapter(ab.slot, 1);
  engine_->use_adapter(ac.slot, 1);
  EXPECT_EQ(refusal("b+c"), "busy: adapter b+c: all 5 slots for adapters and stacks are in use");
  EXPECT_EQ(outcome([&] { mount("d"); }), "busy: adapter d: all 5 slots for adapters and stacks are in use");
  engine_->use_adapter(ac.slot, -1);
  mount("d");
  EXPECT_EQ(table_->choose("d").slot, ac.slot);
  EXPECT_EQ(table_->choose("a+b").slot, ab.slot);
  engine_->use_adapter(ab.slot, -1);
}

TEST_F(Table, memory_bounds_adapters_and_stacks) {
  start(8);
  const formats::Adapter a = adapter("a");
  const formats::Adapter* const one[] = {&a};
  const formats::Adapter* const two[] = {&a, &a};
  const int64_t each = adapter_bytes(one) + 4 * a.values(), stack = adapter_bytes(two);
  start(8, 3 * each + stack);
  for (const char* id : {"a", "b", "c"}) mount(id);
  EXPECT_EQ(table_->bytes(), 3 * each);
  table_->choose("a+b");
  EXPECT_EQ(table_->bytes(), 3 * each + stack);
  const AdapterChoice bc = table_->choose("b+c");
  EXPECT_EQ(table_->bytes(), 3 * each + stack);
  engine_->use_adapter(bc.slot, 1);
  EXPECT_TRUE(refusal("a+c").starts_with("out_of_memory: adapter a+c takes ")) << refusal("a+c");
  EXPECT_TRUE(outcome([&] { mount("d"); }).starts_with("out_of_memory: adapter d takes "));
  EXPECT_EQ(table_->choose("b+c").slot, bc.slot);
  engine_->use_adapter(bc.slot, -1);
  EXPECT_TRUE(refusal("a+b+c").starts_with("out_of_memory: adapter a+b+c takes ")) << "more than all stacks have";
  EXPECT_EQ(table_->choose("b+c").slot, bc.slot) << "it made no room for nothing";
}

TEST_F(Table, a_stack_beyond_the_rank_of_a_slot_is_the_requests_fault) {
  start(5);
  for (const char* id : {"a", "b", "c", "d"}) mount(id);
  const AdapterChoice ab = table_->choose("a+b");
  EXPECT_EQ(refusal("a+b+c+d"), "invalid_argument: the stack a+b+c+d has rank 32, the engine has room for 24");
  EXPECT_EQ(table_->choose("a+b").slot, ab.slot) << "it made no room for nothing";
}

TEST_F(Table, a_failed_mount_changes_nothing) {
  start(4);
  mount("a");
  const std::vector<float> base = logits(kNoAdapter), a = logits(table_->choose("a").slot);
  const int64_t bytes = table_->bytes();
  formats::Adapter wrong = adapter("w");
  wrong.linears.back().N += 1;
  EXPECT_EQ(outcome([&] { table_->mount(wrong, "w"); }),
            "invalid_argument: adapter w: model.layers.1.mlp.down_proj is for [65, 96], the model has [64, 96]");
  EXPECT_EQ(outcome([&] { mount("a"); }), "invalid_argument: adapter a is mounted already on tiny");
  EXPECT_EQ(table_->bytes(), bytes);
  EXPECT_EQ(table_->uses().size(), 1u);
  EXPECT_EQ(logits(kNoAdapter), base);
  EXPECT_EQ(logits(table_->choose("a").slot), a);
}

TEST_F(Table, unmounting_waits_for_requests_alone_and_in_stacks) {
  start(6);
  mount("a");
  mount("b");
  table_->set_default("a");
  const std::vector<float> base = logits(kNoAdapter);
  const int32_t a = table_->choose("").slot, ab = table_->choose("a+b").slot;
  engine_->use_adapter(a, 1);
  engine_->use_adapter(ab, 2);
  EXPECT_EQ(table_->uses()[0].requests, 3);
  EXPECT_EQ(table_->uses()[1].requests, 2);
  int gone = 0;
  table_->unmount("a", [&] { ++gone; });
  EXPECT_EQ(table_->choose("").slot, kNoAdapter) << "the default is the base model at once";
  for (const char* spec : {"a", "a+b"})
    EXPECT_EQ(refusal(spec), "not_found: adapter a is being unmounted from tiny") << spec;
  EXPECT_EQ(outcome([&] { table_->unmount("a", [] {}); }), "not_found: adapter a is not mounted on tiny");
  EXPECT_EQ(outcome([&] { mount("a"); }), "busy: adapter a is still being unmounted on tiny");
  table_->settle();
  engine_->use_adapter(a, -1);
  table_->settle();
  engine_->use_adapter(ab, -1);
  table_->settle();
  EXPECT_EQ(gone, 0);
  EXPECT_TRUE(engine_->has_adapter(a));
  engine_->use_adapter(ab, -1);
  table_->settle();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(engine_->has_adapter(a) || engine_->has_adapter(ab));
  EXPECT_EQ(refusal("a"), "invalid_argument: a is not mounted on tiny; b is");
  EXPECT_EQ(logits(kNoAdapter), base);
  table_->settle();
  EXPECT_EQ(gone, 1);
  mount("a");
  EXPECT_EQ(table_->choose("a+b").space, "digest-a+digest-b");
}

TEST_F(Table, prefixes_of_one_content_are_not_anothers) {
  start(4);
  Scheduler scheduler(*engine_);
  const auto cached = [&](const AdapterChoice& choice) {
    int64_t hit = -1;
    Request r;
    r.prompt = prompt_ids(70);
    r.max_tokens = 1;
    r.adapter = choice.slot;
    r.space = "owner\n" + choice.space;
    Events events;
    events.admitted = [&](int64_t, int64_t n) { hit = n; };
    scheduler.submit(r, events);
    while (scheduler.step()) table_->settle();
    return hit;
  };
  mount("a");
  EXPECT_EQ(cached(table_->choose("a")), 0);
  EXPECT_GE(cached(table_->choose("a")), 64);
  EXPECT_EQ(cached({}), 0);
  table_->unmount("a", [] {});
  table_->settle();
  table_->mount(adapter("a", 4), "other-content");
  EXPECT_EQ(cached(table_->choose("a")), 0) << "the same name, other factors";
}

}  // namespace
}  // namespace hearth::decode
