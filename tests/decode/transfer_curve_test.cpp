// The curve against an exact oracle, its closed forms, and what it refuses.
#include "decode/transfer_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/outcome.h"
#include "vectors/read.h"

namespace hearth::decode {
namespace {

using Points = std::vector<CurvePoint>;

TEST(TransferCurve, equals_the_oracle) {
  const test::Vectors vectors("curve.hvec");
  int curves = 0;
  for (; vectors.arrays().contains(std::to_string(curves) + ".points"); ++curves) {
    const std::string name = std::to_string(curves);
    const auto flat = vectors.get<double>(name + ".points"), at = vectors.get<double>(name + ".l"),
               want = vectors.get<double>(name + ".value");
    Points points;
    for (size_t i = 0; i < flat.size(); i += 2) points.push_back({flat[i], flat[i + 1]});
    const TransferCurve curve(points);
    for (size_t i = 0; i < at.size(); ++i)
      EXPECT_NEAR(curve(at[i]), want[i], 1e-11 * (1 + std::fabs(want[i]))) << name << " at " << at[i];
  }
  EXPECT_EQ(curves, 9);
}

TEST(TransferCurve, points_on_the_diagonal_are_the_identity) {
  const TransferCurve curve(Points{{0.01, 0.01}, {1, 1}, {100, 100}});
  for (double l = -30; l <= 0; l += 0.37) EXPECT_NEAR(curve(l), l, 1e-13 * (1 + std::fabs(l)));
}

TEST(TransferCurve, two_points_are_a_power_with_the_outer_slopes) {
  // y = x^(1/2) between: u -> v = u / 2 from 1 %; below it the slope is at least 1.
  const TransferCurve flat(Points{{1, 10}, {100, 100}});
  const double u = std::log(0.01);
  EXPECT_NEAR(flat(u / 2), u / 4, 1e-14);
  EXPECT_NEAR(flat(u - 3), u / 2 - 3, 1e-14);
  const TransferCurve steep(Points{{1, 0.01}, {50, 25}});
  const double slope = (std::log(0.25) - std::log(0.0001)) / (std::log(0.5) - u);
  EXPECT_NEAR(steep(u - 3), std::log(0.0001) - 3 * slope, 1e-12);
  EXPECT_NEAR(steep(0), std::log(0.25) - slope * std::log(0.5), 1e-12) << "above the last point";
}

TEST(TransferCurve, rises_wherever_its_points_do) {
  const TransferCurve curve(Points{{0.1, 0.1}, {0.2, 0.1001}, {0.3, 60}, {70, 60.1}, {71, 99}});
  double before = curve(-12);
  for (double l = -12 + 1e-3; l <= 0; l += 1e-3) {
    ASSERT_GE(curve(l), before - 1e-12) << l;
    before = curve(l);
  }
}

TEST(TransferCurve, refuses_by_name) {
  const auto says = [](const Points& points) { return test::outcome([&] { TransferCurve{points}; }); };
  EXPECT_EQ(says({{1, 1}, {2, 1}}), "accepted");
  EXPECT_EQ(says({}), "invalid_argument: the curve has 0 points, expected 2 to 64");
  EXPECT_EQ(says({{1, 1}}), "invalid_argument: the curve has 1 points, expected 2 to 64");
  EXPECT_EQ(says(Points(65, {1, 1})), "invalid_argument: the curve has 65 points, expected 2 to 64");
  EXPECT_EQ(says({{0, 1}, {2, 2}}),
            "invalid_argument: curve point 1 has x = 0, expected more than 0, up to 100 percent");
  EXPECT_EQ(says({{1, 1}, {2, 101}}),
            "invalid_argument: curve point 2 has y = 101, expected more than 0, up to 100 percent");
  EXPECT_EQ(says({{1, NAN}, {2, 2}}),
            "invalid_argument: curve point 1 has y = nan, expected more than 0, up to 100 percent");
  EXPECT_EQ(says({{2, 1}, {2, 2}}), "invalid_argument: curve point 2 has x = 2 behind 2, expected rising x");
  EXPECT_EQ(says({{1, 3}, {2, 2}}), "invalid_argument: the curve falls: point 2 has y = 2 behind 3");
}

}  // namespace
}  // namespace hearth::decode
