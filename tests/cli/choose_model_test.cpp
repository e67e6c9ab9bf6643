// What serve begins with where no model is named.
#include "cli/choose_model.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

// Weights, and what a typical context needs in all, of a budget of 1000 bytes.
Candidate model(const std::string& name, int64_t weights, int64_t needed, bool embedding = false) {
  json::Object facts, fit, report;
  report["weights_bytes"] = weights;
  report["usable_bytes"] = 1000;
  fit["typical_total_bytes"] = needed;
  fit["report"] = std::move(report);
  facts["embedding"] = embedding;
  facts["fit"] = std::move(fit);
  return {.name = name, .facts = std::move(facts)};
}

struct Case {
  const char* what;
  std::vector<Candidate> models;
  std::string preferred, chosen;
};

TEST(ChooseModel, the_default_then_what_fits_well_then_what_fits) {
  const Case cases[] = {
      {"the largest within 0.6", {model("a", 100, 200), model("b", 500, 600), model("c", 550, 601)}, "", "b"},
      {"none is within 0.6", {model("a", 620, 700), model("b", 800, 1000), model("c", 900, 1001)}, "", "b"},
      {"the default wins over larger ones", {model("a", 100, 200), model("b", 500, 600)}, "a", "a"},
      {"also when it fits tightly", {model("a", 500, 600), model("b", 900, 1000)}, "b", "b"},
      {"a default that does not fit", {model("a", 500, 600), model("b", 1000, 1001)}, "b", "a"},
      {"an embedding model comes last", {model("a", 500, 600, true), model("b", 100, 200)}, "", "b"},
      {"but before nothing", {model("a", 500, 600, true), model("b", 1000, 1200)}, "", "a"},
      {"and after one that fits tightly", {model("a", 500, 600, true), model("b", 700, 900)}, "", "b"},
  };
  for (const Case& c : cases) EXPECT_EQ(choose_model(c.models, c.preferred), c.chosen) << c.what;
}

TEST(ChooseModel, where_none_fits_the_smallest_need_is_told) {
  try {
    choose_model({model("a", 3'000'000'000, 4'000'000'000), model("b", 1'500'000'000, 2'000'000'000)}, "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("none of the 2 models here fits"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("the smallest, b, needs 2.0 GB"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hearth::cli
