// Log-probability to log-probability along a curve that a user draws (spec server 19).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::decode {

// In percent of probability: tokens as likely as x_pct are drawn as if they were as likely as y_pct, before the result
// is made to sum to one again.
struct CurvePoint {
  double x_pct = 0, y_pct = 0;
};
inline constexpr int64_t kCurvePointsMax = 64;

// Monotone piecewise cubic through (ln(x_pct / 100), ln(y_pct / 100)), after Fritsch & Carlson 1980, "Monotone
// Piecewise Cubic Interpolation": tangents are means of the neighbouring secants, at the ends the secant, and are
// shrunk onto the circle of radius 3 (section 3) where they leave it. Below the first point a line of slope max(1,
// first tangent), above the last one of the last tangent. Points on the diagonal give the identity.
class TransferCurve {
 public:
  // Throws Error{invalid_argument} naming the point unless there are 2 to kCurvePointsMax, with values in (0, 100], x
  // rising and y not falling.
  explicit TransferCurve(std::span<const CurvePoint> points);

  double operator()(double logprob) const;

 private:
  std::vector<double> u_, v_, slope_;  // by point: ln x, ln y, tangent
};

}  // namespace hearth::decode
