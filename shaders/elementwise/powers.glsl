// Powers, remainders and lengths, for whoever includes math.glsl.

// The length of (x, y), without squares that are too large or too small.
vec4 hypot_(vec4 x, vec4 y) {
  vec4 a = abs(x), b = abs(y);
  vec4 least = min(a, b), most = max(a, b);
  vec4 q = mix(least / most, vec4(1), equal(least, most));
  return mix(most * sqrt(1.0 + q * q), vec4(0), equal(most, vec4(0)));
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
