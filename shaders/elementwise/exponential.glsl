// e^x rounded once: to within 0.54 units in the last place of fp32, where exp_ of math.glsl is off
// by up to 1.7. For what is enlarged later, as the frequencies of a timestep's embedding are: an
// angle of 1000 has a thousand times the error of its frequency.
//
// The polynomial is a minimax fit on |r| <= 0.348.
#include "math.glsl"

// e^(h + l) - 1 - h - h^2 / 2, for r = h + l with |r| <= 0.348 and |l| <= 2^-11.
vec4 exp_tail(vec4 r, vec4 h, vec4 l) {
  vec4 p = vec4(1.9913762e-4);
  p = p * r + 1.3935777e-3;
  p = p * r + 8.3332743e-3;
  p = p * r + 4.1666456e-2;
  p = p * r + 1.6666667e-1;
  return p * r * (r * r) + (l * h + 0.5 * l * l) + l;
}

vec4 exp_rounded(vec4 x) {
  // Beyond these the result is inf or 0 anyhow; a NaN passes both comparisons.
  vec4 v = mix(x, vec4(100.0), greaterThan(x, vec4(100.0)));
  v = mix(v, vec4(-110.0), lessThan(v, vec4(-110.0)));
  // x = n * log(2) + h + l; `precise` keeps drivers from adding in another order.
  vec4 n = floor(v * 1.44269504088896341 + 0.5);
  precise vec4 rest = v - n * 0.693359375;
  precise vec4 correction = n * -2.12194440e-4;
  precise vec4 r = rest - correction;
  // In steps of 2^-11, so that 1 + h + h^2 / 2 is exact, and what is rounded is less than 0.01.
  vec4 h = floor(r * 2048.0 + 0.5) * (1.0 / 2048.0);
  precise vec4 l = (rest - h) - correction;
  vec4 tail = exp_tail(r, h, l);
  precise vec4 sum = (1.0 + (h + 0.5 * h * h)) + tail;
  return scale_by_power(sum, mix(n, vec4(0), isnan(x)));
}
