// Rotary rules against their formulas, computed here anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/rope.h"
#include "support/outcome.h"

namespace hearth::model {
namespace {

RopeInput input(const char* type, const char* numbers = "{}") {
  return {
      .type = type, .base = 10000, .Dh = 64, .rot = 64, .context = 4096, .numbers = json::parse(numbers, "numbers")};
}
double plain(int i, double base = 10000, double rot = 64) { return std::pow(base, -2.0 * i / rot); }

std::string refusal(const RopeInput& in) {
  return test::outcome([&] { make_rope(in, "config.json"); });
}

TEST(Rope, default_and_mrope) {
  for (const char* type : {"default", "mrope"}) {
    const graph::RopeSpec s = make_rope(input(type), "c");
    ASSERT_EQ(s.inv_freq.size(), 32u);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i)));
    EXPECT_EQ(s.attention_factor, 1);
    EXPECT_EQ(s.pair_stride, 32);
    EXPECT_EQ(s.dynamic_base, 0);
  }
}

TEST(Rope, partial_and_interleaved) {
  RopeInput in = input("default");
  in.rot = 16;
  EXPECT_EQ(make_rope(in, "c").pair_stride, 8);
  EXPECT_EQ(make_rope(in, "c").inv_freq[3], static_cast<float>(plain(3, 10000, 16)));
  in.interleaved = true;
  EXPECT_EQ(make_rope(in, "c").pair_stride, 0);
}

TEST(Rope, linear_divides) {
  const graph::RopeSpec s = make_rope(input("linear", R"({"factor": 4})"), "c");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) / 4));
}

TEST(Rope, dynamic_keeps_its_numbers_for_the_step) {
  const graph::RopeSpec s =
      make_rope(input("dynamic", R"({"factor": 3, "original_max_position_embeddings": 2048})"), "c");
  EXPECT_EQ(s.dynamic_base, 10000);
  EXPECT_EQ(s.dynamic_factor, 3);
  EXPECT_EQ(s.dynamic_positions, 2048);
  EXPECT_EQ(s.inv_freq[5], static_cast<float>(plain(5)));
  EXPECT_EQ(make_rope(input("dynamic", R"({"factor": 3})"), "c").dynamic_positions, 4096);  // the trained maximum
}

TEST(Rope, llama3_blends_between_two_wavelengths) {
  const graph::RopeSpec s = make_rope(input("llama3", R"({"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 1024})"),
                                      "c");
  int kept = 0, divided = 0, blended = 0;
  for (int i = 0; i < 32; ++i) {
    const double f = plain(i), wave = 2 * std::numbers::pi / f;
    double want = f;
    if (wave > 1024) {
      want = f / 8;
      ++divided;
    } else if (wave >= 256) {
      const double t = (1024 / wave - 1) / 3;
      want = f * ((1 - t) / 8 + t);
      ++blended;
    } else {
      ++kept;
    }
    EXPECT_FLOAT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(want)) << i;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(blended, 0);
  // Defaults: low 1, high 4, S0 8192.
  EXPECT_EQ(make_rope(input("llama3", R"({"factor": 8})"), "c").inv_freq,
            make_rope(input("llama3", R"({"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                                          "original_max_position_embeddings": 8192})"),
                      "c")
                .inv_freq);
}

TEST(Rope, yarn_blends_by_dimension_and_lifts_the_attention) {
  const graph::RopeSpec s = make_rope(input("yarn", R"({"factor": 4, "original_max_position_embeddings": 1024})"), "c");
  const auto turn = [](double beta) {
    return 64 * std::log(1024 / (2 * std::numbers::pi * beta)) / (2 * std::log(10000.0));
  };
  const double lo = std::floor(turn(32)), hi = std::ceil(turn(1));
  ASSERT_EQ(lo, 5);  // 32 ln(5.093) / ln(10000) = 5.66
  ASSERT_EQ(hi, 18);
  for (int i = 0; i < 32; ++i) {
    const double t = std::clamp((i - lo) / (hi - lo), 0.0, 1.0);
    EXPECT_FLOAT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) * ((1 - t) + t / 4))) << i;
  }
  EXPECT_FLOAT_EQ(s.attention_factor, static_cast<float>(0.1 * std::log(4.0) + 1));
  const graph::RopeSpec both = make_rope(
      input("yarn", R"({"factor": 4, "original_max_position_embeddings": 1024, "mscale": 0.5, "mscale_all_dim": 2})"),
      "c");
  EXPECT_FLOAT_EQ(both.attention_factor, static_cast<float>((0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1)));
  EXPECT_EQ(make_rope(input("yarn", R"({"factor": 1})"), "c").attention_factor, 1);
}

TEST(Rope, a_config_may_say_the_attention_factor_and_leave_yarn_borders_as_they_fall) {
  const auto yarn = [](const char* more) {
    const std::string numbers = fmt::format(R"({{"factor": 4, "original_max_position_embeddings": 1024, {}}})", more);
    return make_rope(input("yarn", numbers.c_str()), "c");
  };
  EXPECT_EQ(yarn(R"("attention_factor": 1.5)").attention_factor, 1.5f);
  EXPECT_FLOAT_EQ(yarn(R"("attention_factor": null)").attention_factor, static_cast<float>(0.1 * std::log(4.0) + 1));
  EXPECT_EQ(test::outcome([&] { yarn(R"("attention_factor": 0)"); }),
            "corrupt_file: c: rope_type yarn has attention_factor 0, it must be positive");
  const auto turn = [](double beta) {
    return 64 * std::log(1024 / (2 * std::numbers::pi * beta)) / (2 * std::log(10000.0));
  };
  const graph::RopeSpec s = yarn(R"("truncate": false)");
  const double lo = turn(32), hi = turn(1);
  for (int i = 0; i < 32; ++i) {
    const double t = std::clamp((i - lo) / (hi - lo), 0.0, 1.0);
    EXPECT_FLOAT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) * ((1 - t) + t / 4))) << i;
  }
  EXPECT_EQ(yarn(R"("truncate": true)").inv_freq, yarn(R"("beta_fast": 32)").inv_freq);
}

std::string factors(double first) {
  std::string list;
  for (int i = 0; i < 32; ++i) list += fmt::format("{}{}", i ? ", " : "", first + i);
  return "[" + list + "]";
}

TEST(Rope, longrope_takes_the_list_of_its_context) {
  const auto with = [](double S0) {
    return make_rope(input("longrope", fmt::format(R"({{"original_max_position_embeddings": {}, "short_factor": {},
                                                         "long_factor": {}}})",
                                                   S0, factors(1), factors(2))
                                           .c_str()),
                     "c");
  };
  const graph::RopeSpec is_long = with(1024), is_short = with(4096);
  for (int i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(is_long.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) / (2 + i)));
    EXPECT_FLOAT_EQ(is_short.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) / (1 + i)));
  }
  EXPECT_FLOAT_EQ(is_long.attention_factor, static_cast<float>(std::sqrt(1 + std::log(4.0) / std::log(1024.0))));
  EXPECT_EQ(is_short.attention_factor, 1);
}

TEST(Rope, proportional_turns_the_first_pairs_over_the_whole_head) {
  RopeInput in = input("proportional", R"({"factor": 2})");
  in.rot = 16;
  const graph::RopeSpec s = make_rope(in, "c");
  EXPECT_EQ(s.rot, 16);
  EXPECT_EQ(s.pair_stride, 32);
  ASSERT_EQ(s.inv_freq.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(s.inv_freq[static_cast<size_t>(i)], static_cast<float>(plain(i) / 2));
}

TEST(Rope, refuses_numbers_that_are_absent_or_impossible) {
  EXPECT_EQ(refusal(input("yarn")), "corrupt_file: config.json: rope_type yarn needs factor");
  EXPECT_EQ(refusal(input("longrope")),
            "corrupt_file: config.json: rope_type longrope needs original_max_position_embeddings");
  EXPECT_EQ(refusal(input("longrope", R"({"original_max_position_embeddings": 1024, "long_factor": [1, 2]})")),
            "corrupt_file: config.json: long_factor has 2 values, 32 pairs turn");
  EXPECT_EQ(refusal(input("linear", R"({"factor": "two"})")),
            "corrupt_file: config.json: factor: expected a number, found a string");
  for (const double base : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    RopeInput in = input("default");
    in.base = base;
    EXPECT_EQ(
        refusal(in),
        fmt::format("corrupt_file: config.json: the base of rotary embeddings (rope_theta) is {}, it must be positive",
                    base));
  }
  // Numbers whose frequencies fp32 does not hold.
  RopeInput tiny = input("default");
  tiny.base = 1e-300;
  EXPECT_NE(refusal(tiny).find("gives a frequency of"), std::string::npos);
  EXPECT_NE(refusal(input("yarn", R"({"factor": 1e-300})")).find("gives a frequency of"), std::string::npos);
  EXPECT_EQ(refusal(input("yarn", R"({"factor": 2, "beta_fast": -1})")),
            "corrupt_file: config.json: rope_type yarn has beta_fast -1, it must be positive");
  RopeInput wide = input("default");
  wide.rot = 66;
  EXPECT_EQ(refusal(wide),
            "corrupt_file: config.json: 66 of 64 head columns turn (partial_rotary_factor), an even number up to 64 is "
            "needed");
}

// Zero gives infinities that every answer then carries, less than zero turns the wrong way or gives NaN far out.
TEST(Rope, refuses_factors_and_lengths_that_are_not_positive) {
  for (const char* type : {"linear", "dynamic", "llama3", "yarn", "proportional"})
    for (const char* factor : {"0", "-2"})
      EXPECT_EQ(
          refusal(input(type, fmt::format(R"({{"factor": {}}})", factor).c_str())),
          fmt::format("corrupt_file: config.json: rope_type {} has factor {}, it must be positive", type, factor));
  EXPECT_EQ(refusal(input("dynamic", R"({"factor": 2, "original_max_position_embeddings": 0})")),
            "corrupt_file: config.json: rope_type dynamic has original_max_position_embeddings 0, it must be positive");
  EXPECT_EQ(refusal(input("longrope", R"({"original_max_position_embeddings": 1024, "long_factor": [0]})")),
            "corrupt_file: config.json: long_factor has 1 values, 32 pairs turn");
}

TEST(Rope, a_dynamic_length_beyond_every_position_never_stretches) {
  const graph::RopeSpec s =
      make_rope(input("dynamic", R"({"factor": 2, "original_max_position_embeddings": 1e300})"), "c");
  EXPECT_EQ(s.dynamic_positions, int64_t{1} << 31);
}

}  // namespace
}  // namespace hearth::model
