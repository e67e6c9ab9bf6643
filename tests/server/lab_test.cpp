// The bodies of /signal and /generate, and the sampling fields whose members are checked where they are read.
#include "server/dialects/lab.h"

#include <gtest/gtest.h>

#include "server/dialects/sampling_fields.h"
#include "server/http/problem.h"
#include "server/sampling.h"

namespace hearth::server::lab {
namespace {

json::Object body_of(const std::string& text) { return *json::parse(text, "a body").object(); }

const std::string kPoints = R"("points": [{"x_pct": 1, "y_pct": 2}, {"x_pct": 100, "y_pct": 100}])";

// "field: sentence", or "" where the body is fine.
template <class Read>
std::string refusal(const Read& read) {
  try {
    read();
  } catch (const RequestError& error) {
    return error.param() + ": " + error.what();
  }
  return "";
}

TEST(Lab, a_prompt_or_messages) {
  const LabRequest raw = parse_signal(body_of(R"({"prompt": "Hi", "model": "m", "adapter": "none"})"));
  EXPECT_EQ(raw.generation.kind, Generation::Kind::raw);
  EXPECT_TRUE(raw.generation.signal);
  EXPECT_EQ(raw.generation.prompt, "Hi");
  EXPECT_EQ(raw.generation.adapter, "none");
  EXPECT_EQ(raw.model, "m");
  const LabRequest chat = parse_signal(body_of(
      R"({"messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "none", "keep_alive": 5, "temperature": 2})"));
  EXPECT_EQ(chat.generation.kind, Generation::Kind::chat);
  EXPECT_EQ(chat.generation.thinking, false);
  EXPECT_EQ(chat.keep_alive, "5");
  EXPECT_EQ(chat.generation.sampling.size(), 0u) << "nothing shapes the distribution";
}

TEST(Lab, defaults_of_samples) {
  const Generation g = parse_generate(body_of(R"({"prompt": "Hi", )" + kPoints + "}")).generation;
  EXPECT_FALSE(g.signal);
  EXPECT_EQ(g.n, 3);
  EXPECT_EQ(g.max_tokens, 80);
  EXPECT_TRUE(g.sampling.find("seed")) << "drawn here, so that the answer can name it";
  EXPECT_EQ(g.sampling.find("curve")->get("points")->array()->size(), 2u);
  const Generation other =
      parse_generate(body_of(R"({"prompt": "Hi", "n": 8, "max_tokens": 256, "seed": 7, )" + kPoints + "}")).generation;
  EXPECT_EQ(other.n, 8);
  EXPECT_EQ(other.max_tokens, 256);
  EXPECT_EQ(other.sampling.find("seed")->as_int("seed"), 7);
}

TEST(Lab, what_is_refused_names_its_field) {
  const auto signal = [](const std::string& text) { return refusal([&] { parse_signal(body_of(text)); }); };
  EXPECT_EQ(signal("{}"), "prompt: the body takes prompt or messages, one of them");
  EXPECT_EQ(signal(R"({"prompt": "a", "messages": [{"role": "user", "content": "b"}]})"),
            "prompt: the body takes prompt or messages, one of them");
  EXPECT_EQ(signal(R"({"prompt": ["a"]})"), "prompt: prompt must be of type string, not an array");
  EXPECT_TRUE(signal(R"({"messages": []})").starts_with("messages: "));
  EXPECT_TRUE(signal(R"({"messages": [{"role": "x"}]})").starts_with("messages: "));
  EXPECT_TRUE(signal(R"({"prompt": "a", "chat_template_kwargs": {"messages": []}})").starts_with("chat_template"));

  const auto generate = [](const std::string& more) {
    return refusal([&] { parse_generate(body_of(R"({"prompt": "a")" + more + "}")); });
  };
  EXPECT_EQ(generate(""), "points: points is required");
  EXPECT_EQ(generate(R"(, "points": [{"x_pct": 1, "y_pct": 1}])"),
            "points: points must have between 2 and 64 items, not 1");
  EXPECT_EQ(generate(R"(, "points": [{"x_pct": 1, "y_pct": 5}, {"x_pct": 2, "y_pct": 4}])"),
            "points: points: the curve falls: point 2 has y = 4 behind 5");
  EXPECT_TRUE(generate(R"(, "points": [{"x_pct": 0, "y_pct": 5}, {"x_pct": 2, "y_pct": 6}])").starts_with("points: "));
  EXPECT_TRUE(generate(R"(, "points": [{"x_pct": 5, "y_pct": 5}, {"x_pct": 5, "y_pct": 6}])").starts_with("points: "));
  EXPECT_EQ(generate(R"(, "points": [{"x_pct": 1}, {"x_pct": 5, "y_pct": 6}])"),
            "points: points: point 1 must have x_pct and y_pct, two numbers");
  for (const char* bad : {R"(, "n": 0)", R"(, "n": 9)", R"(, "n": 1.5)"})
    EXPECT_TRUE(generate("," + kPoints + bad).starts_with("n: ")) << bad;
  for (const char* bad : {R"(, "max_tokens": 0)", R"(, "max_tokens": 257)"})
    EXPECT_TRUE(generate("," + kPoints + bad).starts_with("max_tokens: ")) << bad;
  EXPECT_TRUE(generate("," + kPoints + R"(, "seed": "x")").starts_with("seed: "));
}

TEST(Lab, documents) {
  const AnswerHead head = {.request_id = "req_1", .model = "m", .created = 7};
  Collected a;
  a.text = "one";
  a.reason = "length";
  a.usage = {.prompt = 4, .completion = 2};
  Collected b = a;
  b.text = "two";
  b.reasoning = "why";
  b.reason = "stop";
  const LabRequest request = parse_generate(body_of(R"({"prompt": "Hi", "n": 2, "seed": 7, )" + kPoints + "}"));
  const json::Value samples = samples_writer(request)->document(head, {a, b});
  EXPECT_EQ(*samples.get("object")->string(), "samples");
  EXPECT_EQ(samples.get("seed")->as_int("seed"), 7);
  EXPECT_EQ(json::dump(*samples.get("samples")),
            json::dump(json::parse(R"([{"index": 0, "text": "one", "finish_reason": "length"},
                {"index": 1, "text": "two", "reasoning": "why", "finish_reason": "stop"}])",
                                   "")));
  EXPECT_EQ(samples.get("usage")->get("completion_tokens")->as_int(""), 4);
  a.signal = json::parse(R"({"bins": [], "entropy": 1.5, "top": []})", "");
  const json::Value signal = signal_writer()->document(head, {a});
  EXPECT_EQ(*signal.get("object")->string(), "signal");
  EXPECT_EQ(signal.get("entropy")->as_double(""), 1.5);
}

TEST(SamplingFields, what_a_request_leaves_out_of_its_curve_is_the_servers) {
  const auto drawn = [](const std::string& request, const std::string& defaults) {
    return sampler_options(body_of(request), body_of(defaults), 100);
  };
  const std::string hlg = R"({"hlg": {"enabled": true, "width": 1.5}})", points = "{\"curve\": {" + kPoints + "}}";
  EXPECT_EQ(drawn("{}", hlg).hlg_width, 1.5);
  EXPECT_TRUE(drawn(R"({"hlg": null, "curve": null})", hlg).hlg);
  const decode::SamplerOptions both = drawn(R"({"hlg": {"shoulder": 2}})", hlg);
  EXPECT_TRUE(both.hlg && both.hlg_width == 1.5 && both.hlg_shoulder == 2);
  EXPECT_FALSE(drawn(R"({"hlg": {"enabled": false}})", hlg).hlg);
  const decode::SamplerOptions by_points = drawn(points, hlg);
  EXPECT_FALSE(by_points.hlg) << "the two exclude each other: the request's puts the default out";
  EXPECT_EQ(by_points.curve.size(), 2u);
  const decode::SamplerOptions by_hlg = drawn(R"({"hlg": {}})", points);
  EXPECT_TRUE(by_hlg.hlg && by_hlg.curve.empty());
  EXPECT_EQ(drawn("{}", points).curve.size(), 2u);
}

TEST(SamplingFields, curves_are_checked_where_they_are_read) {
  const auto says = [](const std::string& text) {
    return refusal([&] {
      Generation g;
      read_sampling(body_of(text), g);
    });
  };
  EXPECT_EQ(says(R"({"hlg": {"width": 2, "pivot": "median", "toe": null, "enabled": true}})"), "");
  EXPECT_EQ(says(R"({"hlg": {"pivot": "mode"}})"), "hlg: hlg.pivot must be one of top, entropy, median");
  EXPECT_EQ(says(R"({"hlg": {"toe": 0}})").substr(0, 21), "hlg: hlg.toe must be ");
  EXPECT_EQ(says(R"({"hlg": {"enabled": 1}})"), "hlg: hlg.enabled must be of type bool, not a number");
  EXPECT_EQ(says(R"({"curve": {}})"), "curve: curve must have points, an array of {x_pct, y_pct}");
  EXPECT_EQ(says(R"({"curve": {"points": []}})"), "curve: curve: the curve has 0 points, expected 2 to 64");
  EXPECT_EQ(says("{\"curve\": {" + kPoints + "}, \"hlg\": {}}"),
            "curve: hlg and curve are both given, one of them can draw");
  EXPECT_EQ(says("{\"curve\": {" + kPoints + "}, \"hlg\": {\"enabled\": false}}"), "");
  EXPECT_EQ(says(R"({"repetition_penalty": 0.001})").substr(0, 20), "repetition_penalty: ");
  EXPECT_EQ(says(R"({"logit_bias": {"3": 1e200}})"), "logit_bias: logit_bias must be a dict of int to float");
  EXPECT_EQ(says(R"({"reasoning_budget": -1})").substr(0, 18), "reasoning_budget: ");
  EXPECT_EQ(says(R"({"any_whitespace": "yes"})").substr(0, 16), "any_whitespace: ");
}

}  // namespace
}  // namespace hearth::server::lab
