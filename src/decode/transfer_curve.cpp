#include "decode/transfer_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace hearth::decode {
namespace {

double log_of_percent(size_t point, const char* axis, double pct) {
  if (!(pct > 0 && pct <= 100))
    fail(ErrorKind::invalid_argument, "curve point {} has {} = {}, expected more than 0, up to 100 percent", point + 1,
         axis, pct);
  return std::log(pct / 100);
}

}  // namespace

TransferCurve::TransferCurve(std::span<const CurvePoint> points) {
  const size_t n = points.size();
  if (n < 2 || std::cmp_greater(n, kCurvePointsMax))
    fail(ErrorKind::invalid_argument, "the curve has {} points, expected 2 to {}", n, kCurvePointsMax);
  for (size_t i = 0; i < n; ++i) {
    u_.push_back(log_of_percent(i, "x", points[i].x_pct));
    v_.push_back(log_of_percent(i, "y", points[i].y_pct));
    if (i == 0) continue;
    if (!(u_[i] > u_[i - 1]))
      fail(ErrorKind::invalid_argument, "curve point {} has x = {} behind {}, expected rising x", i + 1,
           points[i].x_pct, points[i - 1].x_pct);
    if (v_[i] < v_[i - 1])
      fail(ErrorKind::invalid_argument, "the curve falls: point {} has y = {} behind {}", i + 1, points[i].y_pct,
           points[i - 1].y_pct);
  }
  const auto secant = [&](size_t i) { return (v_[i + 1] - v_[i]) / (u_[i + 1] - u_[i]); };
  slope_.push_back(secant(0));
  for (size_t i = 1; i + 1 < n; ++i) slope_.push_back((secant(i - 1) + secant(i)) / 2);
  slope_.push_back(secant(n - 2));
  for (size_t i = 0; i + 1 < n; ++i) {
    const double d = secant(i);
    if (d == 0) {
      slope_[i] = slope_[i + 1] = 0;
      continue;
    }
    const double a = slope_[i] / d, b = slope_[i + 1] / d, length = std::sqrt(a * a + b * b);
    if (length > 3) {
      slope_[i] = 3 / length * a * d;
      slope_[i + 1] = 3 / length * b * d;
    }
  }
}

double TransferCurve::operator()(double l) const {
  if (l < u_.front()) return v_.front() + std::max(1.0, slope_.front()) * (l - u_.front());
  if (l >= u_.back()) return v_.back() + slope_.back() * (l - u_.back());
  const auto i = static_cast<size_t>(std::upper_bound(u_.begin(), u_.end(), l) - u_.begin()) - 1;
  const double h = u_[i + 1] - u_[i], t = (l - u_[i]) / h, s = 1 - t;
  return v_[i] * (1 + 2 * t) * s * s + h * slope_[i] * t * s * s + v_[i + 1] * t * t * (3 - 2 * t) -
         h * slope_[i + 1] * t * t * s;
}

}  // namespace hearth::decode
