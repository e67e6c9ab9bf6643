// Ragged steps over a tiny random model: what a row gives does not depend on who else is in the step.
#include "decode/engine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "decode/generate.h"
#include "decode/tiny_engine.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using test::TinyModel;
using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

Floats step(Engine& engine, std::initializer_list<StepInput> inputs) {
  const std::span<float> logits = engine.step({inputs.begin(), inputs.size()});
  return {logits.begin(), logits.end()};
}

TEST(Engine, a_step_is_row_invariant) {
  for (const graph::KvFormat kv :
       {graph::KvFormat::bf16, graph::KvFormat::q8, graph::KvFormat::q4, graph::KvFormat::f32}) {
    const auto engine = tiny_engine({}, {.kv = kv, .sequences_max = 2, .prefill_chunk = 128, .gathered_max = 128});
    const Ids a = prompt_ids(70, 1), b = prompt_ids(9, 2);
    Sequence alone_a = engine->cache().make(), alone_b = engine->cache().make();
    const Floats want_a = step(*engine, {{&alone_a, a, 70}}), want_b = step(*engine, {{&alone_b, b, 9}});
    engine->cache().free(alone_a);
    engine->cache().free(alone_b);

    Sequence sa = engine->cache().make(), sb = engine->cache().make();
    Floats both = step(*engine, {{&sb, b, 9}, {&sa, a, 70}});
    EXPECT_TRUE(std::equal(want_b.begin(), want_b.end(), both.begin()));
    EXPECT_TRUE(std::equal(want_a.begin(), want_a.end(), both.begin() + static_cast<int64_t>(want_b.size())));
    EXPECT_EQ(both.size(), want_a.size() + want_b.size());
    engine->cache().free(sa);
    engine->cache().free(sb);

    // Row by row, the other sequence going on in the same steps.
    const std::span<const int32_t> rows_a = a, rows_b = b;
    for (size_t i = 0; i < 9; ++i) {
      both = step(*engine, {{&sa, rows_a.subspan(i, 1), 1}, {&sb, rows_b.subspan(i, 1), 1}});
      EXPECT_TRUE(std::equal(both.begin(), both.begin() + 258, want_a.begin() + static_cast<int64_t>(258 * i))) << i;
      EXPECT_TRUE(std::equal(both.begin() + 258, both.end(), want_b.begin() + static_cast<int64_t>(258 * i))) << i;
    }
  }
}

TEST(Engine, a_sequence_may_take_part_without_logits) {
  const auto engine = tiny_engine({}, {.sequences_max = 2, .prefill_chunk = 64, .gathered_max = 2});
  const Ids a = prompt_ids(10, 1), b = prompt_ids(12, 2);
  Sequence sa = engine->cache().make(), sb = engine->cache().make();
  const Floats got = step(*engine, {{&sa, a, 0}, {&sb, b, 2}});
  EXPECT_EQ(got.size(), 2u * 258);
  EXPECT_EQ(sa.length(), 10);
  EXPECT_EQ(sb.ids, b);
  EXPECT_TRUE(step(*engine, {{&sa, a, 0}}).empty());
}

TEST(Engine, refuses_ids_and_lengths_with_both_numbers_and_keeps_its_pages) {
  const auto engine = tiny_engine({}, {.context = 100, .prefill_chunk = 128, .gathered_max = 1});
  EXPECT_EQ(engine->context(), 100);
  const int64_t pages = engine->cache().pages_free(0);
  Sequence s = engine->cache().make();
  const Ids bad = {1, 258, 2}, negative = {-1}, large = prompt_ids(101);
  EXPECT_EQ(test::outcome([&] { step(*engine, {{&s, bad, 1}}); }),
            "invalid_argument: token id 258 is outside the vocabulary of 258");
  EXPECT_EQ(test::outcome([&] { step(*engine, {{&s, negative, 1}}); }),
            "invalid_argument: token id -1 is outside the vocabulary of 258");
  EXPECT_EQ(test::outcome([&] { step(*engine, {{&s, large, 1}}); }),
            "out_of_memory: 101 positions do not fit the context of 100");
  EXPECT_EQ(engine->cache().pages_free(0), pages);
  EXPECT_EQ(s.length(), 0);
}

// Executor that fails on demand, as a lost device does.
class Failing final : public graph::Executor {
 public:
  graph::WeightHandle load(const PackedTensor& w, graph::LayoutHint hint, std::string_view name) override {
    return inner_->load(w, hint, name);
  }
  void unload(graph::WeightHandle weight) override { inner_->unload(weight); }
  std::unique_ptr<graph::Plan> prepare(const graph::Program& p, const graph::Limits& l) override {
    return inner_->prepare(p, l);
  }
  std::unique_ptr<graph::KvStorage> make_kv(const graph::Program& p, std::span<const int64_t> pages) override {
    return inner_->make_kv(p, pages);
  }
  void run(graph::Plan& plan, const graph::Bindings& bindings) override {
    if (fail_next) fail(ErrorKind::device_lost, "the device is lost");
    inner_->run(plan, bindings);
  }
  void wait() override { inner_->wait(); }
  graph::DeviceInfo info() const override { return inner_->info(); }
  int64_t weight_bytes() const override { return inner_->weight_bytes(); }
  int64_t working_bytes() const override { return inner_->working_bytes(); }
  std::span<const graph::BadWeight> bad_weights() const override { return inner_->bad_weights(); }
  int64_t weight_need(const WeightExtent& w, graph::LayoutHint hint) const override {
    return inner_->weight_need(w, hint);
  }
  int64_t working_need(std::span<const PlanExtent> plans) const override { return inner_->working_need(plans); }
  void set_timing(bool on) override { inner_->set_timing(on); }
  std::span<const graph::OpTime> timing() const override { return inner_->timing(); }

  bool fail_next = false;

 private:
  std::unique_ptr<graph::Executor> inner_ = graph::make_reference_executor(1);
};

TEST(Engine, a_step_that_fails_changes_nothing) {
  const test::TempDir dir;
  auto executor = std::make_unique<Failing>();
  Failing& switched = *executor;
  Engine engine(test::open_tiny_model({}, dir), std::move(executor),
                {.context = 256, .sequences_max = 2, .prefill_chunk = 200, .memory_budget = 1'000'000'000});
  const Ids a = prompt_ids(70, 1), more = prompt_ids(100, 2), one = {5};
  Sequence s = engine.cache().make();
  step(engine, {{&s, a, 1}});
  const Sequence before = s;
  const int64_t pages = engine.cache().pages_free(0);
  switched.fail_next = true;
  EXPECT_EQ(test::outcome([&] { step(engine, {{&s, more, 1}}); }), "device_lost: the device is lost");
  EXPECT_EQ(s.pages, before.pages);
  EXPECT_EQ(s.ids, before.ids);
  EXPECT_EQ(engine.cache().pages_free(0), pages);
  switched.fail_next = false;
  EXPECT_EQ(step(engine, {{&s, one, 1}}).size(), 258u);
}

// All bytes of the head are ones: NaN.
void break_head(const test::TempDir& dir) {
  const std::filesystem::path path = dir.path() / "model.safetensors";
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path)), head = int64_t{258} * 64 * 4;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(bytes - head);
  file << std::string(static_cast<size_t>(head), '\xff');
}

TEST(Engine, weights_that_are_no_numbers_are_told_at_load_and_blamed_for_an_answer) {
  const test::TempDir dir;
  test::write_tiny_model({}, dir);
  break_head(dir);
  log::global().configure({.fd = -1});
  Engine engine(model::Model::open(dir.path()), graph::make_reference_executor(1),
                {.context = 64, .memory_budget = 1'000'000'000});
  const std::string file = (dir.path() / "config.json").string();
  EXPECT_EQ(log::global().recent(1).back().message,
            file +
                ": 16512 scales or values in 1 of 21 weights are NaN or infinite, first in lm_head; hearth doctor "
                "--deep lists them");
  log::global().configure({});
  ASSERT_EQ(engine.executor().bad_weights().size(), 1u);
  EXPECT_EQ(engine.executor().bad_weights()[0].count, 258 * 64);
  Sequence s = engine.cache().make();
  const Ids prompt = prompt_ids(5);
  EXPECT_EQ(test::outcome([&] { generate(engine, s, prompt, {}, [](int32_t) { return true; }); }),
            "corrupt_file: " + file +
                ": 258 of 258 logits are NaN or infinite, so no token can be drawn; hearth doctor "
                "--deep shows the weights that are to blame");
}

TEST(Engine, when_the_pool_is_dry_the_step_changes_nothing) {
  const auto engine = tiny_engine({}, {.context = 64, .sequences_max = 3, .prefill_chunk = 64, .gathered_max = 3});
  const Ids a = prompt_ids(64, 1), b = prompt_ids(1, 2);
  Sequence held[3] = {engine->cache().make(), engine->cache().make(), engine->cache().make()};
  for (Sequence& s : held) step(*engine, {{&s, a, 1}});
  Sequence fresh = engine->cache().make();
  engine->cache().free(held[0]);
  Sequence other = engine->cache().make();
  EXPECT_EQ(test::outcome([&] { step(*engine, {{&fresh, b, 1}, {&other, b, 1}}); }),
            "out_of_memory: the KV cache has no free page for 1 more positions");
  EXPECT_TRUE(fresh.pages[0].empty());
  EXPECT_EQ(engine->cache().pages_free(0), 1);
  EXPECT_EQ(step(*engine, {{&fresh, b, 1}}).size(), 258u);
}

TEST(Engine, opening_refuses_contexts_that_do_not_fit) {
  const test::TempDir dir;
  test::write_tiny_model({}, dir);
  const auto open = [&](EngineOptions options) {
    return test::outcome([&] { Engine(model::Model::open(dir.path()), graph::make_reference_executor(1), options); });
  };
  const std::string file = (dir.path() / "config.json").string();
  EXPECT_EQ(open({.context = 513, .memory_budget = 1'000'000'000}),
            "out_of_memory: " + file + ": a context of 513 positions was asked for, the model was trained for 512");
  const EngineOptions options{.context = 512};
  const auto model = model::Model::open(dir.path());
  const auto executor = graph::make_reference_executor(1);
  const int64_t needed = memory_need(*model, *executor, options, 512).total();
  EXPECT_EQ(largest_context(*model, *executor, options, needed), 512);
  EXPECT_EQ(largest_context(*model, *executor, options, needed - 1), 448);
  EXPECT_EQ(largest_context(*model, *executor, options, 1000), 0);
  EXPECT_EQ(
      open({.context = 512, .memory_budget = 1000}),
      fmt::format("out_of_memory: {}: a context of 512 positions needs {} MB, the memory budget is 0 MB (0 positions "
                  "fit); lower --context or raise --memory-budget",
                  file, needed / 1'000'000));
}

TEST(Engine, opening_refuses_numerics_that_the_executor_does_not_offer) {
  EXPECT_EQ(test::outcome([] { tiny_engine({}, {.numerics = graph::Numerics::fast}); }),
            "invalid_argument: numerics fast is not offered by the executor reference, 1 threads");
}

TEST(Engine, opening_refuses_a_quantized_cache_whose_groups_do_not_fit_the_heads) {
  const std::string sentence =
      test::outcome([] { tiny_engine({.H = 4, .Hkv = 2, .Dh = 32}, {.kv = graph::KvFormat::q8}); });
  EXPECT_TRUE(sentence.starts_with("invalid_argument: ")) << sentence;
  EXPECT_TRUE(sentence.ends_with("a KV cache of q8 or q4 needs heads of a multiple of 64, these have 32")) << sentence;
}

// Trained contexts need not be multiples of a page.
TEST(Engine, short_and_odd_contexts_fit_whole) {
  for (const int64_t context : {40, 64, 100}) {
    const test::TempDir dir;
    const auto model = test::open_tiny_model({.context = context}, dir);
    const EngineOptions options;
    const auto executor = graph::make_reference_executor(1);
    const int64_t needed = memory_need(*model, *executor, options, context).total();
    EXPECT_EQ(largest_context(*model, *executor, options, needed), context);
    EXPECT_EQ(largest_context(*model, *executor, options, needed - 1), context <= 64 ? 0 : 64);
  }
  EXPECT_EQ(tiny_engine({.context = 40})->context(), 40);
}

TEST(MemoryNeed, counts_pages_windows_and_formats) {
  const test::TempDir plain_dir, window_dir;
  const auto plain = test::open_tiny_model({.context = 100000}, plain_dir);
  const auto windowed = test::open_tiny_model({.context = 100000, .window = 128}, window_dir);
  const auto executor = graph::make_reference_executor(1);
  const EngineOptions options{.sequences_max = 2, .prefill_chunk = 64};
  const int64_t position = 2 * 2 * 64 * 2;  // layers, K and V, Dh, bf16
  EXPECT_EQ(memory_need(*plain, *executor, options, 1000).kv, 2 * 16 * 64 * position);
  EXPECT_EQ(memory_need(*plain, *executor, options, 1000).kv_per_position, position);
  EXPECT_EQ(memory_need(*windowed, *executor, options, 1000).kv, 2 * 5 * 64 * position);
  EXPECT_EQ(memory_need(*windowed, *executor, options, 1000).kv_per_position, 0);
  EXPECT_EQ(memory_need(*plain, *executor, {.kv = graph::KvFormat::q8, .prefill_chunk = 64}, 64).kv,
            64 * 2 * 2 * (64 + 4));
  EXPECT_EQ(memory_need(*plain, *executor, {.gathered_max = 7}, 64).logits, 4 * 7 * 258);
}

}  // namespace
}  // namespace hearth::decode
