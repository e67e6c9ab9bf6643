// Adapters on an engine: each row has its own, a mount that fails changes nothing, a base row never notices.
#include <gtest/gtest.h>

#include <cmath>

#include "decode/answers.h"
#include "model/forward.h"
#include "support/adapter_files.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using Floats = std::vector<float>;

EngineOptions with_slots(int64_t slots, int64_t rows = 4) {
  return {.context = 128,
          .sequences_max = rows,
          .prefill_chunk = 64,
          .gathered_max = 64,
          .adapter_slots = slots,
          .adapter_rank_max = 24};
}

std::vector<formats::AdapterLinear> linears(const Engine& engine) { return model::adapter_linears(engine.spec()); }

formats::Adapter adapter(const Engine& engine, const std::string& id, int64_t R = 8, float scale = 2) {
  return test::random_adapter(linears(engine), {.id = id, .R = R, .scale = scale, .seed = id.front() * uint64_t{7}});
}

// Logits of ids evaluated alone.
Floats alone(Engine& engine, const Ids& ids, int32_t slot) {
  Sequence s = engine.cache().make();
  const StepInput input{&s, ids, static_cast<int64_t>(ids.size()), slot};
  const std::span<float> logits = engine.step({&input, 1});
  Floats copy(logits.begin(), logits.end());
  engine.cache().free(s);
  return copy;
}

double distance(const Floats& a, const Floats& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

TEST(Adapters, each_row_of_a_batch_has_its_own) {
  const auto plain = tiny_engine({}, {.context = 128, .prefill_chunk = 64, .gathered_max = 64});
  const auto engine = tiny_engine({}, with_slots(3));
  const Ids ids = prompt_ids(9), other = prompt_ids(12, 2);
  const Floats base = alone(*plain, ids, kNoAdapter);
  EXPECT_EQ(alone(*engine, ids, kNoAdapter), base);  // before the first mount

  const formats::Adapter a = adapter(*engine, "a"), b = adapter(*engine, "b", 4, 0.5f);
  const formats::Adapter* const both[] = {&a, &b};
  const int32_t sa = engine->mount_adapter(a), sb = engine->mount_adapter(b), sab = engine->mount_adapter(both);
  const int32_t slots[] = {sa, kNoAdapter, sab, sb};
  std::vector<Floats> want;
  for (const int32_t slot : slots) want.push_back(alone(*engine, ids, slot));
  EXPECT_EQ(want[1], base);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_GT(distance(want[i], want[j]), 0.05) << i << " " << j;

  std::vector<Sequence> sequences;
  for (int i = 0; i < 4; ++i) sequences.push_back(engine->cache().make());
  std::vector<StepInput> inputs;
  for (size_t i = 0; i < 4; ++i) inputs.push_back({&sequences[i], ids, 9, slots[i]});
  const std::span<float> logits = engine->step(inputs);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(std::ranges::equal(logits.subspan(i * want[i].size(), want[i].size()), want[i])) << i;
  for (Sequence& s : sequences) engine->cache().free(s);

  engine->unmount_adapter(sa);
  EXPECT_EQ(alone(*engine, ids, sb), want[3]);
  EXPECT_EQ(alone(*engine, ids, sab), want[2]);  // a stack has its factors to itself
  engine->unmount_adapter(sb);
  engine->unmount_adapter(sab);
  EXPECT_EQ(engine->adapter_bytes(), 0);
  EXPECT_EQ(alone(*engine, ids, kNoAdapter), base);
  EXPECT_EQ(alone(*engine, other, kNoAdapter), alone(*plain, other, kNoAdapter));
}

TEST(Adapters, a_stack_is_the_sum_of_its_adapters) {
  const auto engine = tiny_engine({}, with_slots(4));
  const Ids ids = prompt_ids(9);
  const formats::Adapter a = adapter(*engine, "a"), b = adapter(*engine, "b", 4, 0.5f);
  // The same sum as one adapter: ranks side by side, scales taken into B.
  formats::Adapter sum = a;
  for (size_t i = 0; i < sum.linears.size(); ++i) {
    formats::AdapterFactors& f = sum.linears[i];
    const formats::AdapterFactors &fa = a.linears[i], &fb = b.linears[i];
    f.R = fa.R + fb.R;
    f.scale = 1;
    f.a.clear();
    for (int64_t k = 0; k < f.K; ++k) {
      f.a.insert(f.a.end(), fa.a.begin() + k * fa.R, fa.a.begin() + (k + 1) * fa.R);
      f.a.insert(f.a.end(), fb.a.begin() + k * fb.R, fb.a.begin() + (k + 1) * fb.R);
    }
    f.b.clear();
    for (const formats::AdapterFactors* each : {&fa, &fb})
      for (const float v : each->b) f.b.push_back(each->scale * v);
  }
  const formats::Adapter* const both[] = {&a, &b};
  EXPECT_EQ(alone(*engine, ids, engine->mount_adapter(both)), alone(*engine, ids, engine->mount_adapter(sum)));
  // Modules that only one of them changes.
  const formats::Adapter q = test::random_adapter(linears(*engine), {.id = "q", .only = "q_proj"});
  const formats::Adapter down = test::random_adapter(linears(*engine), {.id = "d", .only = "down_proj"});
  const formats::Adapter* const apart[] = {&q, &down};
  formats::Adapter joined = q;
  joined.linears.insert(joined.linears.end(), down.linears.begin(), down.linears.end());
  EXPECT_EQ(alone(*engine, ids, engine->mount_adapter(apart)), alone(*engine, ids, engine->mount_adapter(joined)));
}

TEST(Adapters, a_zero_second_factor_changes_no_logit) {
  const auto engine = tiny_engine({}, with_slots(1));
  formats::Adapter zero = adapter(*engine, "z");
  for (formats::AdapterFactors& f : zero.linears) std::ranges::fill(f.b, 0.0f);
  const Ids ids = prompt_ids(20);
  EXPECT_EQ(alone(*engine, ids, engine->mount_adapter(zero)), alone(*engine, ids, kNoAdapter));
}

TEST(Adapters, a_mount_that_fails_changes_nothing) {
  const auto engine = tiny_engine({}, with_slots(2));
  const formats::Adapter good = adapter(*engine, "good");
  const int32_t slot = engine->mount_adapter(good);
  const Ids ids = prompt_ids(9);
  const Floats base = alone(*engine, ids, kNoAdapter), adapted = alone(*engine, ids, slot);
  const int64_t bytes = engine->adapter_bytes(), weights = engine->executor().weight_bytes();

  formats::Adapter wide = adapter(*engine, "wide", 25), unknown = good, shape = good;
  unknown.linears.back().module = "model.layers.7.mlp.down_proj";
  shape.linears.back().K += 1;
  const formats::Adapter* const stack[] = {&good, &good, &good, &good};
  EXPECT_EQ(test::outcome([&] { engine->mount_adapter(wide); }),
            "invalid_argument: adapter wide: model.layers.0.mlp.down_proj has rank 25, the engine has room for 24");
  EXPECT_EQ(test::outcome([&] { engine->mount_adapter(stack); }),
            "invalid_argument: adapter good+good+good+good: model.layers.0.mlp.down_proj has rank 32, the engine has "
            "room for 24");
  EXPECT_EQ(
      test::outcome([&] { engine->mount_adapter(unknown); }),
      "invalid_argument: adapter good: model.layers.7.mlp.down_proj is for [64, 96], the model has no such linear");
  EXPECT_EQ(test::outcome([&] { engine->mount_adapter(shape); }),
            "invalid_argument: adapter good: model.layers.1.mlp.down_proj is for [64, 97], the model has [64, 96]");
  EXPECT_EQ(engine->mount_adapter(adapter(*engine, "next")), 1 - slot);
  EXPECT_EQ(test::outcome([&] { engine->mount_adapter(good); }),
            "busy: adapter good: 2 adapters are mounted, the engine holds no more");
  engine->unmount_adapter(1 - slot);
  EXPECT_EQ(engine->adapter_bytes(), bytes);
  EXPECT_EQ(engine->executor().weight_bytes(), weights);
  EXPECT_EQ(alone(*engine, ids, kNoAdapter), base);
  EXPECT_EQ(alone(*engine, ids, slot), adapted);
  EXPECT_EQ(test::outcome([&] { alone(*engine, ids, 1 - slot); }), "invalid_argument: adapter slot 1 is empty");
  EXPECT_EQ(test::outcome([&] { engine->unmount_adapter(1 - slot); }), "not_found: adapter slot 1 is empty");
}

TEST(Adapters, memory_is_counted_and_bounded) {
  const auto plain = tiny_engine({}, {.context = 128, .prefill_chunk = 64, .gathered_max = 64});
  const formats::Adapter a = adapter(*plain, "a");
  const formats::Adapter* const one[] = {&a};
  const int64_t bytes = adapter_bytes(one);
  // A is padded from rank 8 to 16 columns, B's columns are multiples of 32 here.
  int64_t want = 0;
  for (const formats::AdapterFactors& f : a.linears) want += 4 * (16 * f.K + 8 * f.N);
  EXPECT_EQ(bytes, want);
  EngineOptions options = with_slots(1);
  options.adapter_bytes = bytes;
  const auto roomy = tiny_engine({}, options);
  EXPECT_EQ(roomy->need().adapters, bytes);
  const int64_t before = roomy->executor().weight_bytes();
  roomy->mount_adapter(a);
  EXPECT_EQ(roomy->adapter_bytes(), bytes);
  EXPECT_GE(roomy->executor().weight_bytes() - before, bytes);

  options.adapter_bytes = 0;
  options.memory_budget = roomy->need().total() - bytes + 1000;
  const auto tight = tiny_engine({}, options);
  EXPECT_EQ(test::outcome([&] { tight->mount_adapter(a); }).substr(0, 40), "out_of_memory: adapter a takes 0.1 MB, t");
  options.memory_budget += bytes;
  tiny_engine({}, options)->mount_adapter(a);
}

TEST(Adapters, an_engine_without_slots_mounts_none) {
  const auto engine = tiny_engine({});
  const formats::Adapter a = adapter(*engine, "a");
  EXPECT_EQ(test::outcome([&] { engine->mount_adapter(a); }),
            "invalid_argument: adapter a: model.layers.0.mlp.down_proj is for [64, 96], the model has no such linear");
  EXPECT_EQ(test::outcome([&] { tiny_engine({}, {.adapter_slots = 65}); }),
            "invalid_argument: 65 slots for adapters of rank 512: 0 to 64 slots and a rank of 1 or more fit");
}

// What a scheduler gives, with the prefixes of each adapter in a space of its own.
TEST(Adapters, requests_of_a_scheduler_give_what_each_gives_alone) {
  const auto engine = tiny_engine({}, with_slots(3));
  const formats::Adapter a = adapter(*engine, "a"), b = adapter(*engine, "b", 4);
  const formats::Adapter* const both[] = {&a, &b};
  const int32_t slots[] = {engine->mount_adapter(a), engine->mount_adapter(b), engine->mount_adapter(both), kNoAdapter};
  const char* const spaces[] = {"a", "b", "a+b", ""};
  const Ids stem = prompt_ids(70, 3);  // a whole page in common
  std::vector<Ids> answers(16), want;
  for (size_t i = 0; i < answers.size(); ++i) {
    Ids prompt = stem;
    prompt.push_back(static_cast<int32_t>(i / 8));
    Sequence s = engine->cache().make();
    engine->set_default_adapter(slots[i % 4]);
    want.push_back(generate(*engine, s, prompt, {.max_tokens = 12}, [](int32_t) { return true; }).ids);
    engine->cache().free(s);
  }
  engine->set_default_adapter(kNoAdapter);
  EXPECT_NE(want[0], want[3]);
  Scheduler scheduler(*engine);
  int64_t cached = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    Request r;
    r.prompt = stem;
    r.prompt.push_back(static_cast<int32_t>(i / 8));
    r.max_tokens = 12;
    r.space = spaces[i % 4];
    r.adapter = slots[i % 4];
    scheduler.submit(std::move(r), {.admitted = [&](int64_t, int64_t n) { cached += n; },
                                    .token =
                                        [&answers, i](const TokenEvent& token) {
                                          answers[i].push_back(token.id);
                                          return true;
                                        },
                                    .done = {},
                                    .failed = {}});
  }
  EXPECT_EQ(engine->adapter_uses(slots[0]), 4);
  EXPECT_EQ(test::outcome([&] { engine->unmount_adapter(slots[0]); }), "busy: adapter a: 4 requests use it");
  while (scheduler.step()) {
  }
  EXPECT_GT(cached, 0);
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], want[i]) << i;

  // Drained: it goes, and so do its prefixes, for the next adapter of that name.
  EXPECT_EQ(engine->adapter_uses(slots[0]), 0);
  const int64_t entries = scheduler.prefixes().entries();
  scheduler.forget("a");
  EXPECT_LT(scheduler.prefixes().entries(), entries);
  EXPECT_EQ(scheduler.prefixes().match_length("a", stem, 70), 0);
  EXPECT_GT(scheduler.prefixes().match_length("b", stem, 70), 0);
  engine->unmount_adapter(slots[0]);
  Request late;
  late.prompt = stem;
  late.adapter = slots[0];
  EXPECT_EQ(test::outcome([&] { scheduler.submit(std::move(late), {}); }), "invalid_argument: adapter slot 0 is empty");
}

// The error names the adapter, a stack by all its parts; whoever shares the step never notices.
TEST(Adapters, one_that_makes_no_numbers_is_blamed_and_fails_its_request_alone) {
  const auto engine = tiny_engine({}, with_slots(3));
  formats::Adapter broken = adapter(*engine, "broken");
  for (formats::AdapterFactors& f : broken.linears) std::ranges::fill(f.b, NAN);
  const formats::Adapter good = adapter(*engine, "good");
  const formats::Adapter* const both[] = {&good, &broken};
  const int32_t slots[] = {engine->mount_adapter(broken), engine->mount_adapter(both), engine->mount_adapter(good),
                           kNoAdapter};
  const char* const spaces[] = {"broken", "stack", "good", ""};
  std::vector<Answer> answers(4);
  std::vector<Ids> want(4);
  for (const size_t i : {2, 3}) {
    engine->set_default_adapter(slots[i]);
    want[i] = solo(*engine, asked(prompt_ids(70), 10)).ids;
  }
  engine->set_default_adapter(slots[0]);
  const std::string file = engine->spec().file, end =
                                                    ": 258 of 258 logits are NaN or infinite, so no token can be "
                                                    "drawn; without an adapter (\"none\") it shows whether "
                                                    "the model is to blame";
  EXPECT_EQ(test::outcome([&] { solo(*engine, asked(prompt_ids(70), 10)); }), "corrupt_file: adapter broken" + end);
  Scheduler scheduler(*engine);
  for (size_t i = 0; i < answers.size(); ++i) {
    Request r = asked(prompt_ids(70), 10);
    r.adapter = i == 0 ? kDefaultAdapter : slots[i];
    r.space = spaces[i];
    scheduler.submit(r, into(answers[i]));
  }
  drain(scheduler);
  EXPECT_EQ(answers[0].end, "adapter broken" + end);
  EXPECT_EQ(answers[1].end, "adapter good+broken" + end);
  for (const size_t i : {2, 3}) {
    EXPECT_EQ(answers[i].end, "length");
    EXPECT_EQ(answers[i].ids, want[i]);
  }
  EXPECT_EQ(engine->adapter_uses(slots[0]), 0);
}

TEST(Adapters, cancelled_requests_let_go_of_their_adapter) {
  const auto engine = tiny_engine({}, with_slots(1));
  const int32_t slot = engine->mount_adapter(adapter(*engine, "a"));
  {
    Scheduler scheduler(*engine);
    Request r;
    r.prompt = prompt_ids(5);
    r.adapter = slot;
    const RequestId first = scheduler.submit(r, {});
    scheduler.submit(r, {});
    EXPECT_EQ(engine->adapter_uses(slot), 2);
    scheduler.cancel(first);
    scheduler.step();
    EXPECT_EQ(engine->adapter_uses(slot), 1);
  }
  EXPECT_EQ(engine->adapter_uses(slot), 0);
  engine->set_default_adapter(slot);
  engine->unmount_adapter(slot);
  EXPECT_EQ(engine->default_adapter(), kNoAdapter);
}

}  // namespace
}  // namespace hearth::decode
