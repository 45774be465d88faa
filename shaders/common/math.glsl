// Exponentials, logarithms and activations to within 2 to 3 units in the last place of fp32, whatever
// the driver's own are (Vulkan allows exp an error that grows with its argument, and tanh to
// overflow).
//
// Sources: the polynomials of the Cephes library (expf, logf, tanhf) and the rational Chebyshev fit
// of erfc in Numerical Recipes, section 6.2.

// Written so that a NaN stays one.
vec4 limit(vec4 v, float least, float most) {
  v = mix(v, vec4(least), lessThan(v, vec4(least)));
  return mix(v, vec4(most), greaterThan(v, vec4(most)));
}

// v, negated where x has a minus, a zero too: for odd functions.
vec4 signed_as(vec4 v, vec4 x) {
  return intBitsToFloat(floatBitsToInt(v) ^ (floatBitsToInt(x) & 0x80000000));
}

vec4 hardswish_(vec4 v) {
  return v * limit(v * (1.0 / 6.0) + 0.5, 0.0, 1.0);
}

// 2^n for whole n in [-252, 252]: in two halves, each of which is a normal number or zero.
vec4 scale_by_power(vec4 v, vec4 n) {
  ivec4 whole = ivec4(n);
  ivec4 half_ = whole >> 1;
  return v * intBitsToFloat((half_ + 127) << 23) * intBitsToFloat((whole - half_ + 127) << 23);
}

// e^r - 1 for |r| <= log(2) / 2.
vec4 expm1_near_zero(vec4 r) {
  vec4 p = vec4(1.9875691500e-4);
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  return p * r * r + r;
}

vec4 exp_near_zero(vec4 r) { return expm1_near_zero(r) + 1.0; }

// x = n * log(2) + r with a whole n and |r| <= log(2) / 2; n = 0 of a NaN.
vec4 exp_remainder(vec4 x, out vec4 n) {
  n = floor(x * 1.44269504088896341 + 0.5);
  vec4 r = x - n * 0.693359375;
  r -= n * -2.12194440e-4;
  n = mix(n, vec4(0), isnan(x));
  return r;
}

// e^x * 2^power, which may be finite where e^x is not.
vec4 exp_times(vec4 x, float power) {
  // Beyond these the result is inf or 0 anyhow; a NaN passes both comparisons.
  vec4 v = mix(x, vec4(100.0), greaterThan(x, vec4(100.0)));
  v = mix(v, vec4(-110.0), lessThan(v, vec4(-110.0)));
  vec4 n;
  vec4 r = exp_remainder(v, n);
  return scale_by_power(exp_near_zero(r), n + power);
}

vec4 exp_(vec4 x) { return exp_times(x, 0.0); }

vec4 expm1_(vec4 x) {
  vec4 n;
  // Beyond these the result is inf or -1 anyhow.
  vec4 r = exp_remainder(limit(x, -30.0, 89.0), n);
  vec4 half_power = intBitsToFloat((ivec4(n) + 126) << 23);
  vec4 v = 2.0 * (half_power * expm1_near_zero(r) + (half_power - 0.5));
  return mix(v, x, lessThan(abs(x), vec4(1e-8)));
}

vec4 exp2_(vec4 x) {
  vec4 v = limit(x, -200.0, 200.0);
  vec4 n = floor(v + 0.5);
  vec4 r = (v - n) * 0.693147180559945309;
  return scale_by_power(exp_near_zero(r), mix(n, vec4(0), isnan(x)));
}

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for x > 0.
void split_exponent(vec4 x, out vec4 m, out vec4 e) {
  bvec4 tiny = lessThan(x, vec4(1.17549435e-38));
  vec4 v = mix(x, x * 16777216.0, tiny);
  ivec4 word = floatBitsToInt(v);
  e = vec4((word >> 23) - 126) - mix(vec4(0), vec4(24), tiny);
  m = intBitsToFloat((word & 0x007fffff) | 0x3f000000);
  bvec4 low = lessThan(m, vec4(0.707106781186547524));
  m = mix(m, m + m, low);
  e = mix(e, e - 1.0, low);
}

// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)).
vec4 log_near_one(vec4 f) {
  vec4 z = f * f;
  vec4 p = vec4(7.0376836292e-2);
  p = p * f - 1.1514610310e-1;
  p = p * f + 1.1676998740e-1;
  p = p * f - 1.2420140846e-1;
  p = p * f + 1.4249322787e-1;
  p = p * f - 1.6668057665e-1;
  p = p * f + 2.0000714765e-1;
  p = p * f - 2.4999993993e-1;
  p = p * f + 3.3333331174e-1;
  return f + (p * f * z - 0.5 * z);
}

#define INFINITY intBitsToFloat(0x7f800000)
#define NOT_A_NUMBER intBitsToFloat(0x7fc00000)

// What log-like functions give outside of the finite positive numbers.
vec4 log_edges(vec4 x, vec4 result) {
  vec4 v = mix(result, vec4(INFINITY), equal(x, vec4(INFINITY)));
  v = mix(v, vec4(-INFINITY), equal(x, vec4(0)));
  return mix(v, vec4(NOT_A_NUMBER), not(greaterThanEqual(x, vec4(0))));
}

vec4 log_(vec4 x) {
  vec4 m, e;
  split_exponent(x, m, e);
  vec4 v = log_near_one(m - 1.0) + e * -2.12194440e-4;
  return log_edges(x, v + e * 0.693359375);
}

vec4 log10_(vec4 x) {
  vec4 m, e;
  split_exponent(x, m, e);
  vec4 l = log_near_one(m - 1.0);
  // log10(e) and log10(2) in two parts each: the first has few bits, so the products are exact.
  vec4 v = l * 7.00731903251827651e-4 + e * 2.48745663981195213739e-4;
  v += l * 4.3359375e-1;
  return log_edges(x, v + e * 3.00781250e-1);
}

vec4 log1p_(vec4 x) {
  precise vec4 sum = 1.0 + x;
  precise vec4 lost = x - (sum - 1.0);
  vec4 m, e;
  split_exponent(sum, m, e);
  // Where 1 + x is in [sqrt(1/2), sqrt(2)] nothing has to be added up.
  bvec4 near = lessThan(abs(x - 0.0606601718), vec4(0.353553391));
  vec4 v = log_near_one(mix(m - 1.0, x, near));
  vec4 far = v + (e * -2.12194440e-4 + lost / sum) + e * 0.693359375;
  return log_edges(sum, mix(far, v, near));
}

vec4 log2_(vec4 x) {
  vec4 m, e;
  split_exponent(x, m, e);
  vec4 l = log_near_one(m - 1.0);
  // log2(e) = 1 + 0.44
  return log_edges(x, l * 0.442695040888963407 + l + e);
}

vec4 sigmoid_(vec4 x) {
  return 1.0 / (1.0 + exp_(-x));
}

vec4 tanh_(vec4 x) {
  vec4 a = abs(x);
  vec4 z = x * x;
  vec4 p = vec4(-5.70498872745e-3);
  p = p * z + 2.06390887954e-2;
  p = p * z - 5.37397155531e-2;
  p = p * z + 1.33314422036e-1;
  p = p * z - 3.33332819422e-1;
  vec4 small = p * z * x + x;
  vec4 large = 1.0 - 2.0 / (exp_(a + a) + 1.0);
  large = mix(large, -large, lessThan(x, vec4(0)));
  return mix(large, small, lessThan(a, vec4(0.625)));
}

// x * tanh(log(1 + e^x))
vec4 mish_(vec4 x) {
  vec4 e = exp_(limit(x, -INFINITY, 20.0));
  vec4 w = e * e + (e + e);
  return x * (w / (w + 2.0));
}

// log(1 + e^x)
vec4 softplus_(vec4 x) {
  return max(x, 0.0) + log1p_(exp_(-abs(x)));
}

// 1 - erf(x) for x >= 0, with a relative error of 1.2e-7 however small it is.
vec4 erfc_positive(vec4 x) {
  vec4 t = 1.0 / (1.0 + 0.5 * x);
  vec4 p = vec4(0.17087277);
  p = p * t - 0.82215223;
  p = p * t + 1.48851587;
  p = p * t - 1.13520398;
  p = p * t + 0.27886807;
  p = p * t - 0.18628806;
  p = p * t + 0.09678418;
  p = p * t + 0.37409196;
  p = p * t + 1.00002368;
  return t * exp_(p * t - 1.26551223 - x * x);
}

// x * P(normal <= x): from the tail's side, where nothing cancels. Beyond 20 the tail is zero; an
// infinity times zero would be NaN, which it is only below zero, as in eager PyTorch.
vec4 gelu_(vec4 x) {
  vec4 tail = 0.5 * abs(x) * erfc_positive(abs(x) * 0.707106781186547524);
  vec4 above = mix(x - tail, x, greaterThan(x, vec4(20)));
  return mix(above, -tail, lessThan(x, vec4(0)));
}

vec4 gelu_tanh_(vec4 x) {
  vec4 u = 0.797884560802865356 * (x + 0.044715 * x * x * x);
  // 0.5 * (1 + tanh(u)) = sigmoid(2 u)
  return x * sigmoid_(u + u);
}
