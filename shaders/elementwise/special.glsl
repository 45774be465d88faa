// The error function, its inverse, and the logarithm of the gamma function, for whoever includes
// math.glsl and angles.glsl.

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
