// Elementary functions in fma arithmetic; the same bits on every instruction set. Errors against fp64, in ulp of the
// result where it is a normal number, measured over the whole range (tests/cpu/math_test.cpp asserts them):
//   exp 1, tanh 2, sigmoid 3.  silu, gelu_tanh: |error| <= 3 ulp of the result + 2^-24 |x|; gelu: 3 ulp + 2^-23 |x|, as
//   the sizes of its polynomial's coefficients sum to 3.9 where the value is 1.
// Results that would be denormal may be 0. exp(x) is +inf above 88.72 and 0 below -87.33; NaN gives NaN.
// Polynomials: least squares at Chebyshev nodes, reweighted towards the minimax fit.
namespace hearth::cpu::HEARTH_ISA {

// e^x = 2^n e^r, n = rint(x / ln 2), r = x - n ln 2 in two steps (ln 2 = 0x1.63p-1 + a rest; n * 0x1.63p-1 is exact).
HEARTH_INLINE Vec exp(Vec x) {
  const Vec clamped = min(fill(89.0f), max(fill(-88.0f), x));
  const IVec n = nearest(clamped * fill(1.44269504088896341f));
  const Vec nf = to_float(n);
  Vec r = fnma(nf, fill(0x1.63p-1f), clamped);
  r = fnma(nf, fill(-2.12194440e-4f), r);
  Vec p = fma(fill(1.97903415e-4f), r, fill(1.39446597e-3f));
  p = fma(p, r, fill(8.33349707e-3f));
  p = fma(p, r, fill(4.16662950e-2f));
  p = fma(p, r, fill(1.66666659e-1f));
  p = fma(p, r, fill(0.5f));
  p = fma(p, r * r, r);
  // 2^n in two factors, so that n = 128 stays finite until the product overflows.
  const IVec half = nearest(nf * fill(0.5f));
  const IVec rest = nearest(nf - to_float(half));
  const Vec a = floats(shift_left<23>(half + ifill(127))), b = floats(shift_left<23>(rest + ifill(127)));
  const Vec y = fma(p, a, a) * b;
  const Vec flushed = select(less(x, fill(-87.33654f)), zero(), y);
  const Vec capped = select(less(fill(88.72283f), x), fill(__builtin_inff()), flushed);
  return select(is_nan(x), x, capped);
}

HEARTH_INLINE Vec absolute(Vec x) { return floats(bits(x) & ifill(0x7fffffff)); }
HEARTH_INLINE Vec with_sign_of(Vec magnitude, Vec x) {
  return floats(bits(magnitude) | (bits(x) & ifill(static_cast<int32_t>(0x80000000u))));
}

// x + x^3 q(x^2) up to 0.625, else 1 - 2 / (e^2x + 1).
HEARTH_INLINE Vec tanh(Vec x) {
  const Vec a = absolute(x), s = x * x;
  Vec q = fma(fill(2.12274573e-3f), s, fill(-8.15628041e-3f));
  q = fma(q, s, fill(2.16926071e-2f));
  q = fma(q, s, fill(-5.39453784e-2f));
  q = fma(q, s, fill(1.33331959e-1f));
  q = fma(q, s, fill(-3.33333306e-1f));
  const Vec small = fma(q * s, x, x);
  const Vec e = exp(a + a);
  const Vec large = fill(1.0f) - fill(2.0f) / (e + fill(1.0f));
  return select(less(a, fill(0.625f)), small, select(is_nan(x), x, with_sign_of(large, x)));
}

HEARTH_INLINE Vec sigmoid(Vec x) { return fill(1.0f) / (fill(1.0f) + exp(zero() - x)); }
HEARTH_INLINE Vec silu(Vec x) { return x / (fill(1.0f) + exp(zero() - x)); }

// x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form without its cancellation.
HEARTH_INLINE Vec gelu_tanh(Vec x) {
  const Vec inner = fma(fill(0.044715f) * x * x, x, x);
  return x / (fill(1.0f) + exp(inner * fill(-1.59576912160573071f)));
}

// x Phi(x). Phi(-a) = e^(-a^2 / 2) erfcx(a / sqrt 2) / 2 with erfcx a polynomial in 1 / (1 + 0.3 a / sqrt 2).
HEARTH_INLINE Vec gelu(Vec x) {
  const Vec a = min(absolute(x), fill(14.0f));
  const Vec t = fill(1.0f) / fma(a, fill(0.3f * 0.707106781186547524f), fill(1.0f));
  Vec q = fma(fill(5.94501308e-2f), t, fill(-3.57647196e-1f));
  q = fma(q, t, fill(8.17976757e-1f));
  q = fma(q, t, fill(-9.69010553e-1f));
  q = fma(q, t, fill(9.20174143e-1f));
  q = fma(q, t, fill(-3.98216030e-1f));
  q = fma(q, t, fill(3.30357353e-1f));
  q = fma(q, t, fill(8.59944390e-2f));
  q = fma(q, t, fill(1.73926785e-1f));
  q = fma(q, t, fill(1.67611577e-1f));
  q = fma(q, t, fill(1.69387216e-1f));
  q = fma(q, t, fill(-4.62087674e-6f));
  const Vec half = a * fill(0.5f), square = half * a;
  const Vec low = fma(half, a, zero() - square);  // what the rounding of a^2 / 2 lost
  const Vec e = exp(zero() - square);
  const Vec tail = fnma(e, low, e) * q * fill(0.5f);  // Phi(-|x|)
  const Vec phi = select(less(x, zero()), tail, fill(1.0f) - tail);
  return select(is_nan(x), x, x * phi);
}

HEARTH_INLINE Vec activate(graph::Activation f, Vec x) {
  switch (f) {
    case graph::Activation::silu: return silu(x);
    case graph::Activation::gelu: return gelu(x);
    case graph::Activation::gelu_tanh: return gelu_tanh(x);
    case graph::Activation::relu: return max(x, zero());
    case graph::Activation::relu2: {
      const Vec p = max(x, zero());
      return p * p;
    }
    case graph::Activation::sigmoid: return sigmoid(x);
    case graph::Activation::tanh: return tanh(x);
  }
  return x;
}

// r() of the op definitions.
HEARTH_INLINE Vec round_to(DType type, Vec x) {
  if (type == DType::f32) return x;
  if (type == DType::f16) return round_f16(x);
  const IVec u = bits(x);
  const IVec odd = shift_right<16>(u) & ifill(1);
  const IVec rounded = (u + (odd + ifill(0x7fff))) & ifill(static_cast<int32_t>(0xffff0000u));
  return select(is_nan(x), x, floats(rounded));
}

}  // namespace hearth::cpu::HEARTH_ISA
