// Requests to a scheduler over the tiny model, and what came of them.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "decode/scheduler.h"
#include "decode/tiny_engine.h"

namespace hearth::decode {

using Ids = std::vector<int32_t>;
using Top = std::vector<std::pair<int32_t, float>>;

struct Answer {
  Ids ids;
  std::vector<float> logprobs;
  std::vector<Top> tops;
  std::vector<float> logits;  // behind the prompt
  std::string end;            // name of the reason, or the error
  int64_t cached = -1;
  GenerateStats stats;
};

inline Events into(Answer& answer) {
  return {.admitted = [&answer](int64_t, int64_t cached) { answer.cached = cached; },
          .prompt_logits =
              [&answer](std::span<const float> logits) {
                EXPECT_TRUE(answer.logits.empty()) << "once";
                answer.logits.assign(logits.begin(), logits.end());
              },
          .token =
              [&answer](const TokenEvent& token) {
                EXPECT_EQ(answer.end, "");
                answer.ids.push_back(token.id);
                answer.logprobs.push_back(token.logprob);
                answer.tops.emplace_back(token.top.begin(), token.top.end());
                return true;
              },
          .done =
              [&answer](FinishReason reason, const GenerateStats& stats) {
                EXPECT_EQ(answer.end, "");
                answer.end = name_of(reason);
                answer.stats = stats;
              },
          .failed =
              [&answer](const Error& error) {
                EXPECT_EQ(answer.end, "");
                answer.end = error.what();
              }};
}

inline Request asked(Ids prompt, int64_t max_tokens = 20) {
  Request r;
  r.prompt = std::move(prompt);
  r.max_tokens = max_tokens;
  return r;
}

inline EngineOptions rows(int64_t n, int64_t chunk = 32) {
  return {.context = 256, .sequences_max = n, .prefill_chunk = chunk, .gathered_max = n};
}

// What the request gives alone, from an empty cache.
inline Answer solo(Engine& engine, const Request& r) {
  GenerateOptions options{.sampler = r.sampler, .max_tokens = r.max_tokens, .end_ids = r.end_ids};
  Sequence s = engine.cache().make();
  const Generated g = generate(engine, s, r.prompt, options, [](int32_t) { return true; });
  engine.cache().free(s);
  return {.ids = g.ids, .logprobs = g.logprobs, .end = std::string(name_of(g.finish))};
}

inline void drain(Scheduler& scheduler) {
  while (scheduler.step()) {
  }
}

inline void expect_all_free(Engine& engine) {
  for (size_t g = 0; g < engine.page_bytes().size(); ++g)
    EXPECT_EQ(engine.cache().pages_free(g), engine.cache().pages_total(g));
}

}  // namespace hearth::decode
