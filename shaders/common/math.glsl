// Elementary functions to within 2 to 3 units in the last place of fp32, whatever the driver's own
// are (Vulkan allows exp an error that grows with its argument, and tanh to overflow).
//
// Sources: the polynomials of the Cephes library (expf, logf, sinf, cosf, tanhf and the others of
// these names) and the rational Chebyshev fit of erfc in Numerical Recipes, section 6.2.

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

// The argument less n * pi / 2, in four parts of which the first three have 8 bits, so that their
// products with up to 2^16 are exact.
vec4 quarter_remainder(vec4 x, out vec4 n) {
  n = floor(x * 0.636619772367581343 + 0.5);
  vec4 r = x - n * 1.5703125;
  r -= n * 4.82559204101562500e-4;
  r -= n * 1.26659870147705078e-6;
  r -= n * 9.92093518448e-10;
  // Beyond 1e5 the products are not exact any more: far beyond, nothing is left to be right.
  return mix(r, vec4(0), greaterThan(abs(r), vec4(1)));
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

// sin (quarter 0) or cos (quarter 1).
vec4 sin_quarter(vec4 x, int quarter) {
  vec4 n;
  vec4 r = quarter_remainder(x, n);
  vec4 z = r * r;
  vec4 s = (-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1;
  s = s * z * r + r;
  vec4 c = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
  c = c * z * z - 0.5 * z + 1.0;
  ivec4 k = (ivec4(n) + quarter) & 3;
  vec4 v = mix(s, c, notEqual(k & 1, ivec4(0)));
  return mix(v, -v, notEqual(k & 2, ivec4(0)));
}

vec4 sin_(vec4 x) { return sin_quarter(x, 0); }
vec4 cos_(vec4 x) { return sin_quarter(x, 1); }

vec4 tan_(vec4 x) {
  vec4 n;
  vec4 r = quarter_remainder(abs(x), n);
  vec4 z = r * r;
  vec4 p = vec4(9.38540185543e-3);
  p = p * z + 3.11992232697e-3;
  p = p * z + 2.44301354525e-2;
  p = p * z + 5.34112807005e-2;
  p = p * z + 1.33387994085e-1;
  p = p * z + 3.33331568548e-1;
  vec4 v = p * z * r + r;
  v = mix(v, -1.0 / v, notEqual(ivec4(n) & 1, ivec4(0)));
  return signed_as(v, x);
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

vec4 sinh_(vec4 x) {
  vec4 a = abs(x);
  vec4 z = x * x;
  vec4 p = vec4(2.03721912945e-4);
  p = p * z + 8.33028376239e-3;
  p = p * z + 1.66667160211e-1;
  vec4 small = p * z * a + a;
  vec4 half_ = exp_times(a, -1.0);
  vec4 large = half_ - 0.25 / half_;
  return signed_as(mix(large, small, lessThan(a, vec4(1))), x);
}

vec4 cosh_(vec4 x) {
  vec4 half_ = exp_times(abs(x), -1.0);
  return half_ + 0.25 / half_;
}

// For 0 <= a <= 1/2 asin(a), for a up to 1 (pi / 2 - asin(a)) / 2, beyond NaN.
vec4 asin_folded(vec4 a) {
  vec4 x = mix(a, sqrt(0.5 - 0.5 * a), greaterThan(a, vec4(0.5)));
  vec4 z = x * x;
  vec4 p = vec4(4.2163199048e-2);
  p = p * z + 2.4181311049e-2;
  p = p * z + 4.5470025998e-2;
  p = p * z + 7.4953002686e-2;
  p = p * z + 1.6666752422e-1;
  return mix(p * z * x + x, vec4(NOT_A_NUMBER), greaterThan(a, vec4(1)));
}

vec4 asin_(vec4 x) {
  vec4 a = abs(x);
  vec4 v = asin_folded(a);
  return signed_as(mix(v, 1.57079632679489662 - 2.0 * v, greaterThan(a, vec4(0.5))), x);
}

vec4 acos_(vec4 x) {
  vec4 a = abs(x);
  vec4 v = asin_folded(a);
  vec4 far = mix(2.0 * v, 3.14159265358979324 - 2.0 * v, lessThan(x, vec4(0)));
  return mix(1.57079632679489662 - signed_as(v, x), far, greaterThan(a, vec4(0.5)));
}

// atan(a) for a >= 0: of what the angle is from 0, pi / 4 or pi / 2.
vec4 atan_positive(vec4 a) {
  bvec4 middle = greaterThan(a, vec4(0.414213562)), large = greaterThan(a, vec4(2.41421356));
  vec4 from = mix(mix(vec4(0), vec4(0.785398185), middle), vec4(1.57079637), large);
  vec4 x = mix(mix(a, (a - 1.0) / (a + 1.0), middle), -1.0 / a, large);
  vec4 z = x * x;
  vec4 p = vec4(8.05374449538e-2);
  p = p * z - 1.38776856032e-1;
  p = p * z + 1.99777106478e-1;
  p = p * z - 3.33329491539e-1;
  // Both angles have been rounded up by the same part of them.
  return p * z * x - from * 2.78275342e-8 + x + from;
}

vec4 atan_(vec4 x) { return signed_as(atan_positive(abs(x)), x); }

// The angle of the point (x, y), zeros and infinities with their signs.
vec4 atan2_(vec4 y, vec4 x) {
  vec4 a = abs(x), b = abs(y);
  vec4 least = min(a, b), most = max(a, b);
  vec4 q = mix(least / most, vec4(1), equal(least, most));
  vec4 v = atan_positive(mix(q, vec4(0), equal(most, vec4(0))));
  v = mix(v, 1.57079632679489662 - v, greaterThan(b, a));
  v = mix(v, 3.14159265358979324 - v, lessThan(floatBitsToInt(x), ivec4(0)));
  return signed_as(v, y);
}

vec4 asinh_(vec4 x) {
  vec4 a = abs(x);
  bvec4 large = greaterThan(a, vec4(1e9));
  // log(a + sqrt(a^2 + 1)), far out log(2 a)
  vec4 z = a * a;
  vec4 v = log1p_(mix(a + z / (1.0 + sqrt(z + 1.0)), a, large));
  return signed_as(mix(v, v + 0.693147180559945309, large), x);
}

vec4 acosh_(vec4 x) {
  vec4 t = x - 1.0;
  bvec4 large = greaterThan(x, vec4(1e9));
  // log(x + sqrt(x^2 - 1)), far out log(2 x)
  vec4 v = log1p_(mix(t + sqrt(t * (t + 2.0)), t, large));
  v = mix(v, v + 0.693147180559945309, large);
  return mix(v, vec4(NOT_A_NUMBER), not(greaterThanEqual(x, vec4(1))));
}

vec4 atanh_(vec4 x) {
  vec4 a = abs(x);
  // log((1 + a) / (1 - a)) / 2
  vec4 v = 0.5 * log1p_(2.0 * a / (1.0 - a));
  return signed_as(mix(v, vec4(INFINITY), equal(a, vec4(1))), x);
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

vec4 erf_(vec4 v) {
  vec4 s = v * v;
  vec4 near = v * 1.12837916709551257 * (1.0 - s * (1.0 / 3.0 - s * (1.0 / 10.0 - s * (1.0 / 42.0
      - s * (1.0 / 216.0 - s * (1.0 / 1320.0 - s / 9360.0))))));
  vec4 far = sign(v) * (1.0 - erfc_positive(abs(v)));
  return mix(far, near, lessThan(s, vec4(0.25)));
}

// The number of which erf is x, by polynomials of -log(1 - x^2) and, toward the ends, of its root.
vec4 erfinv_(vec4 x) {
  vec4 w = -log_((1.0 - x) * (1.0 + x));
  vec4 a = w - 2.5;
  vec4 p = vec4(2.798955610e-8);
  p = p * a + 3.430734326e-7;
  p = p * a - 3.522236486e-6;
  p = p * a - 4.389634285e-6;
  p = p * a + 2.185773789e-4;
  p = p * a - 1.253729840e-3;
  p = p * a - 4.177678720e-3;
  p = p * a + 2.466407436e-1;
  p = p * a + 1.501409417;
  vec4 b = sqrt(w) - 3.15;
  vec4 q = vec4(-7.280933349e-5);
  q = q * b + 9.867019440e-4;
  q = q * b - 2.539978034e-3;
  q = q * b + 3.629115418e-3;
  q = q * b - 4.877644606e-3;
  q = q * b + 6.638017857e-3;
  q = q * b + 1.004056538;
  q = q * b + 2.983418190;
  return x * mix(mix(p, q, greaterThan(w, vec4(5))), vec4(INFINITY), equal(w, vec4(INFINITY)));
}

// log|gamma(x)| for x >= 0: by a polynomial around 2, to which smaller numbers are brought, and by
// Stirling's series from 3.5 on.
vec4 lgamma_positive(vec4 x) {
  bvec4 tiny = lessThan(x, vec4(0.5)), small = lessThan(x, vec4(1.5));
  vec4 t = mix(mix(x - 2.0, x - 1.0, small), x, tiny);
  vec4 below = mix(mix(vec4(1), x, small), x * (x + 1.0), tiny);
  vec4 a = t - 0.5;
  vec4 p = vec4(2.180429503e-5);
  p = p * a - 5.251546683e-5;
  p = p * a + 9.517553552e-5;
  p = p * a - 3.008122241e-4;
  p = p * a + 9.680543135e-4;
  p = p * a - 3.100436723e-3;
  p = p * a + 1.087535903e-2;
  p = p * a - 4.480517597e-2;
  p = p * a + 2.675819092e-1;
  p = p * a + 5.693657276e-1;
  vec4 near = p * t - log_(below);
  vec4 u = 1.0 / (x * x);
  vec4 r = ((-4.851712331e-4 * u + 7.884403785e-4) * u - 2.777695737e-3) * u + 8.333333313e-2;
  vec4 far = (x - 0.5) * (log_(x) - 1.0) + 0.418938533204672742 + r / x;
  return mix(near, far, greaterThanEqual(x, vec4(3.5)));
}

// Below zero by gamma(x) * gamma(-x) = -pi / (x * sin(pi * x)).
vec4 lgamma_(vec4 x) {
  vec4 a = abs(x);
  vec4 v = lgamma_positive(a);
  vec4 share = a - floor(a);
  vec4 sine = sin_(3.14159265358979324 * min(share, 1.0 - share));
  v = mix(v, 1.14472988584940017 - log_(a) - log_(sine) - v, lessThan(x, vec4(0)));
  return mix(v, vec4(INFINITY), equal(a, vec4(INFINITY)));
}

// The length of (x, y), without squares that are too large or too small.
vec4 hypot_(vec4 x, vec4 y) {
  vec4 a = abs(x), b = abs(y);
  vec4 least = min(a, b), most = max(a, b);
  vec4 q = mix(least / most, vec4(1), equal(least, most));
  return mix(most * sqrt(1.0 + q * q), vec4(0), equal(most, vec4(0)));
}

vec4 gelu_tanh_(vec4 x) {
  vec4 u = 0.797884560802865356 * (x + 0.044715 * x * x * x);
  // 0.5 * (1 + tanh(u)) = sigmoid(2 u)
  return x * sigmoid_(u + u);
}

// The part of a * b that its rounding to fp32 loses (Dekker's product).
vec4 product_error(vec4 a, vec4 b, vec4 product) {
  precise vec4 c = a * 4097.0;
  precise vec4 high_a = c - (c - a);
  precise vec4 low_a = a - high_a;
  precise vec4 d = b * 4097.0;
  precise vec4 high_b = d - (d - b);
  precise vec4 low_b = b - high_b;
  precise vec4 e = high_a * high_b - product;
  e = e + high_a * low_b;
  e = e + low_a * high_b;
  return e + low_a * low_b;
}

// What is left of u when the largest whole multiple of v not beyond it is taken away, with the sign
// of u. Multiples of v by powers of two go first, so that every quotient is a whole number that
// fp32 holds.
vec4 fmod_(vec4 u, vec4 v) {
  vec4 r = abs(u);
  vec4 m = abs(v);
  vec4 mantissa, exponent_m, exponent_r;
  split_exponent(m, mantissa, exponent_m);
  for (int pass = 0; pass < 16 && any(greaterThanEqual(r, m)); pass++) {
    split_exponent(r, mantissa, exponent_r);
    vec4 power = max(exponent_r - exponent_m - 21.0, vec4(0));
    // By 2^-28 or 2^60, so that no part of a product is infinite or denormal.
    bvec4 huge = greaterThanEqual(r, vec4(1.2676506e30)), small = lessThan(r, vec4(1e-12));
    vec4 near = mix(mix(vec4(0), vec4(-28), huge), vec4(60), small);
    vec4 from = scale_by_power(r, near);
    vec4 scaled = scale_by_power(m, power + near);
    vec4 q = floor(from / scaled);
    precise vec4 product = q * scaled;
    vec4 rest = (from - product) - product_error(q, scaled, product);
    rest = mix(rest, rest + scaled, lessThan(rest, vec4(0)));
    r = mix(r, scale_by_power(rest, -near), greaterThanEqual(r, m));
  }
  r = mix(r, abs(u), equal(m, vec4(INFINITY)));
  r = mix(r, vec4(NOT_A_NUMBER), equal(m, vec4(0)));
  r = mix(r, vec4(NOT_A_NUMBER), equal(abs(u), vec4(INFINITY)));
  r = mix(r, v, isnan(v));
  return mix(r, -r, lessThan(u, vec4(0)));
}

// The same with v's sign.
vec4 remainder_(vec4 u, vec4 v) {
  vec4 r = fmod_(u, v);
  vec4 moved = mix(r, r + v, lessThan(sign(r) * sign(v), vec4(0)));
  return mix(moved, r, isnan(r));
}

// |a| ^ b for finite a other than 0: 2^(b * e) * 2^(b * log2(m)), the first exponent exactly.
vec4 pow_positive(vec4 a, vec4 b) {
  vec4 m, e;
  split_exponent(a, m, e);
  vec4 power = clamp(b, vec4(-1e30), vec4(1e30));
  vec4 l = log_near_one(m - 1.0) * 1.44269504088896341;
  precise vec4 p = power * e;
  precise vec4 q = power * l;
  vec4 lost = product_error(power, e, p) + product_error(power, l, q);
  vec4 n = clamp(floor(p + q + 0.5), vec4(-160.0), vec4(160.0));
  vec4 r = clamp((p - n) + q + lost, vec4(-100.0), vec4(100.0));
  return scale_by_power(exp_near_zero(clamp(r, vec4(-1.0), vec4(1.0)) * 0.693147180559945309), n)
      * mix(vec4(1), vec4(INFINITY), greaterThan(r, vec4(1.5)))
      * mix(vec4(1), vec4(0), lessThan(r, vec4(-1.5)));
}

vec4 pow_(vec4 a, vec4 b) {
  vec4 v = pow_positive(abs(a), b);
  bvec4 falls = lessThan(b, vec4(0));
  vec4 toward_zero = mix(vec4(0), vec4(INFINITY), falls);
  vec4 toward_infinity = mix(vec4(INFINITY), vec4(0), falls);
  v = mix(v, toward_zero, equal(a, vec4(0)));
  v = mix(v, toward_infinity, equal(abs(a), vec4(INFINITY)));
  // A negative base: minus for odd exponents, NaN of a finite one for those that are not whole.
  vec4 half_ = 0.5 * b;
  vec4 odd = mix(v, -v, notEqual(floor(half_), half_));
  vec4 broken = mix(vec4(NOT_A_NUMBER), v, equal(a, vec4(-INFINITY)));
  v = mix(v, mix(broken, odd, equal(floor(b), b)), lessThan(a, vec4(0)));
  v = mix(v, a + b, isnan(a));
  v = mix(v, a + b, isnan(b));
  v = mix(v, vec4(1), equal(b, vec4(0)));
  return mix(v, vec4(1), equal(a, vec4(1)));
}

// Modulo 2^32; with a negative exponent the whole part of the quotient.
int power(int base, int exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  int p = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) p *= base;
    base *= base;
  }
  return p;
}
