// Trigonometric and hyperbolic functions, and their inverses, for whoever includes math.glsl: to
// within 2 to 3 units in the last place of fp32.
//
// Source: the polynomials of the Cephes library (sinf, tanf, asinf, atanf and the others).

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
