// Budgets of reasoning, and distributions, through a worker's session over a model that writes a fixed cycle of bytes.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "server/dialects/answer.h"
#include "server/worker/reasoning_constraint.h"
#include "server/worker/session.h"
#include "support/tiny_model.h"

namespace hearth::server {
namespace {

// Behind each byte comes the next one of the text; behind the last one the byte `to`.
std::vector<std::pair<int32_t, int32_t>> cycle(std::string_view text, char to) {
  std::vector<std::pair<int32_t, int32_t>> chain;
  for (size_t i = 0; i < text.size(); ++i)
    chain.emplace_back(static_cast<unsigned char>(text[i]),
                       static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : to));
  return chain;
}

const std::string kPlain = R"({{ '\\n' }})", kOpened = "<think>" + kPlain;  // how a template ends a prompt

struct Answers {
  std::vector<Collected> all;
  std::string error, param;
  int64_t pieces = 0;  // events with text or reasoning
};

class Worker {
 public:
  // The model goes on behind `prompt`, whose last byte the template writes.
  Worker(std::string_view text, char to, const std::string& opened) {
    test::write_tiny_model({.chain = cycle(text, to)}, dir_);
    dir_.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template":
                   "{# <think> </think> #}{% for m in messages %}{{ m.content }}{% endfor %})" +
                   opened + R"("})");
    const std::shared_ptr<model::Model> opened_model = model::Model::open(dir_.path());
    WorkerModel model;
    model.name = "tiny";
    model.text = std::make_unique<model::ModelText>(*opened_model);
    model.engine = std::make_unique<decode::Engine>(
        opened_model, graph::make_reference_executor(1),
        decode::EngineOptions{.context = 256, .sequences_max = 4, .gathered_max = 4, .memory_budget = 1'000'000'000});
    session_ = std::make_unique<Session>(std::move(model), [this](std::string_view frames) { take(frames); });
  }

  Answers ask(Generation g) {
    g.id = ++last_id_;
    if (g.messages.array()->size() == 0) {
      json::Object message;
      message["role"] = "user";
      message["content"] = "x";
      g.messages.array()->push_back(std::move(message));
    }
    if (!g.max_tokens) g.max_tokens = 60;
    g.sampling["temperature"] = 0;
    std::unique_lock lock(mutex_);
    answers_ = {};
    answers_.all.resize(static_cast<size_t>(g.n));
    open_ = g.n;
    session_->submit(to_json(g));
    ended_.wait(lock, [&] { return open_ == 0; });
    return answers_;
  }

 private:
  void take(std::string_view frames) {
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; const auto frame = take_frame(frames, at);) {
      const Event event = event_of(*frame);
      if (event.kind == Event::Kind::error) {
        answers_.error = event.text;
        answers_.param = event.param;
        open_ = 0;
      } else {
        answers_.all[static_cast<size_t>(event.answer)].add(event);
        answers_.pieces += event.kind == Event::Kind::text || event.kind == Event::Kind::reasoning;
        if (event.kind == Event::Kind::finish) --open_;
      }
    }
    ended_.notify_all();
  }

  const test::TempDir dir_;
  std::mutex mutex_;
  std::condition_variable ended_;
  Answers answers_;
  int64_t open_ = 0;
  uint64_t last_id_ = 0;
  std::unique_ptr<Session> session_;
};

Generation budget(std::optional<int64_t> tokens, int64_t n = 1) {
  Generation g;
  g.reasoning_budget = tokens;
  g.n = n;
  return g;
}

void expect_closed(const Collected& a, const std::string& reasoning, char text_begins) {
  EXPECT_EQ(a.reasoning, reasoning);
  EXPECT_EQ(a.usage.reasoning, static_cast<int64_t>(reasoning.size()));
  EXPECT_EQ(a.usage.completion, 60) << "forced tokens count";
  ASSERT_FALSE(a.text.empty());
  EXPECT_EQ(a.text.front(), text_begins);
  EXPECT_EQ(a.reason, "length");
}

TEST(ReasoningBudget, closes_what_the_template_opened) {
  Worker worker("\nabcdefgh>", 'a', kOpened);
  const Collected endless = worker.ask(budget(std::nullopt)).all[0];
  EXPECT_EQ(endless.text, "");
  EXPECT_EQ(endless.usage.reasoning, 60);
  for (const int64_t tokens : {1, 2, 7, 30}) {
    std::string want;
    while (want.size() < static_cast<size_t>(tokens)) want += "abcdefgh>";
    want.resize(static_cast<size_t>(tokens));
    const Collected a = worker.ask(budget(tokens)).all[0];
    expect_closed(a, want, 'a');
    EXPECT_EQ(a.text.size() + want.size() + std::string("</think>").size(), 60u);
  }
  const Collected none = worker.ask(budget(0)).all[0];
  EXPECT_EQ(none.reasoning, "");
  EXPECT_EQ(none.usage.reasoning, 0);
  EXPECT_EQ(none.text.size(), 52u);
  EXPECT_EQ(worker.ask(budget(1000)).all[0].reasoning, endless.reasoning) << "never reached";
}

TEST(ReasoningBudget, closes_what_the_model_opened_itself) {
  Worker worker("\n<think>abc", 'a', kPlain);
  for (const int64_t tokens : {0, 1, 5}) {
    const Collected a = worker.ask(budget(tokens)).all[0];
    expect_closed(a, std::string("abcabcabc").substr(0, static_cast<size_t>(tokens)), 'a');
  }
}

TEST(ReasoningBudget, completes_a_marker_that_the_model_has_begun) {
  Worker worker("\nabc</x>", 'a', kOpened);  // "abc</x>abc</x>..."
  const Collected a = worker.ask(budget(5)).all[0];
  EXPECT_EQ(a.reasoning, "abc") << "\"</\" became the marker's beginning";
  EXPECT_EQ(a.usage.reasoning, 3);
  EXPECT_TRUE(a.text.starts_with("abc</x>")) << a.text;
}

TEST(ReasoningBudget, is_the_same_for_several_answers_and_in_company) {
  Worker worker("\nabcdefgh>", 'a', kOpened);
  const Collected alone = worker.ask(budget(9)).all[0];
  for (const Collected& a : worker.ask(budget(9, 4)).all) {
    EXPECT_EQ(a.reasoning, alone.reasoning);
    EXPECT_EQ(a.text, alone.text);
    EXPECT_EQ(a.usage.reasoning, 9);
  }
}

TEST(ReasoningBudget, a_format_holds_behind_the_forced_marker) {
  Worker worker("\nabcdefgh>", 'a', kOpened);
  Generation g = budget(6);
  json::Object format;
  json::Array words;
  words.emplace_back("yes, all");
  format["kind"] = "choice";
  format["value"] = std::move(words);
  g.format = std::move(format);
  const Collected a = worker.ask(g).all[0];
  EXPECT_EQ(a.reasoning, "abcdef");
  EXPECT_EQ(a.text, "yes, all");
  EXPECT_EQ(a.reason, "stop");
  EXPECT_EQ(a.usage.completion, 6 + 8 + 32 + 8) << "white space behind the marker, which is no text, and the word";
}

TEST(ReasoningBudget, a_limit_within_the_marker_ends_the_answer) {
  Worker worker("\nabcdefgh>", 'a', kOpened);
  Generation g = budget(6);
  g.max_tokens = 10;
  const Collected a = worker.ask(g).all[0];
  EXPECT_EQ(a.reason, "length");
  EXPECT_EQ(a.usage.completion, 10);
  EXPECT_EQ(a.text, "");
}

struct Told final : decode::Constraint {
  void apply(std::span<float>) override { ++applied; }
  void accept(int32_t id) override { text += static_cast<char>(id); }
  bool finished() const override { return text.ends_with('!'); }
  std::string text;
  int applied = 0;
};

// A grammar of calls begins at its opener in the answer, not where reasoning speaks of it.
TEST(ReasoningConstraint, what_is_meant_for_the_answer_hears_nothing_of_reasoning) {
  const test::TempDir dir;
  const std::unique_ptr<model::Model> opened = test::open_tiny_model({}, dir);
  const model::ModelText text(*opened);
  PromptModel model{.text = text};
  find_markup(model, "<think> </think>");
  text::AnswerOptions options;
  options.reasoning = model.reasoning;
  options.reasoning_open = true;
  const std::string answer = "a <tool_call> b</think>cd!";
  using Inner = ReasoningConstraint::Inner;
  for (const Inner sees : {Inner::sees_answer, Inner::sees_all}) {
    const auto inner = std::make_shared<Told>();
    ReasoningConstraint constraint(model, options, std::nullopt, inner, sees);
    std::vector<float> logits(258, 1.0f);
    for (const char c : answer) {
      EXPECT_FALSE(constraint.finished());
      constraint.apply(logits);
      constraint.accept(static_cast<unsigned char>(c));
    }
    EXPECT_TRUE(constraint.finished());
    EXPECT_EQ(logits, std::vector<float>(258, 1.0f));
    EXPECT_EQ(inner->text, sees == Inner::sees_all ? answer : "cd!");
    EXPECT_EQ(inner->applied, static_cast<int>(inner->text.size()));
  }
}

TEST(Signal, is_the_distribution_behind_the_prompt_and_draws_nothing) {
  Worker worker("\nab", 'a', kPlain);
  Generation g;
  g.signal = true;
  for (int turn = 0; turn < 2; ++turn) {
    const Answers answers = worker.ask(g);
    EXPECT_EQ(answers.error, "");
    EXPECT_EQ(answers.pieces, 0);
    const Collected& a = answers.all[0];
    EXPECT_EQ(a.usage.completion, 0);
    EXPECT_EQ(a.usage.prompt, 3) << "<s>, x, a line break";
    ASSERT_TRUE(a.signal.object());
    EXPECT_EQ(a.signal.get("bins")->array()->size(), 80u);
    int64_t tokens = 0;
    double mass = 0;
    for (const json::Value& bin : *a.signal.get("bins")->array()) {
      tokens += bin.get("count")->as_int("count");
      mass += bin.get("mass")->as_double("mass");
    }
    EXPECT_EQ(tokens, 258);
    EXPECT_NEAR(mass, 1, 1e-12);
    const json::Value& best = (*a.signal.get("top")->array())[0];
    EXPECT_EQ(*best.get("token")->string(), "a");
    EXPECT_EQ(best.get("id")->as_int("id"), 'a');
  }
}

}  // namespace
}  // namespace hearth::server
