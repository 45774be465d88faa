// What the kernels of layer normalization share: rows of `count` texels to mean 0 and variance 1, then
// scale and shift.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
FLAT(2, weight)
FLAT(3, bias)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, rows)
PARAM(5, count)
// Elements of a row.
PARAM(6, length)
PARAM_FLOAT(7, epsilon)
CASE(8, has_weight)
CASE(9, has_bias)

#define TEXEL(t) LOAD(source, AT_LINEAR(t, X, Y, Z))

float across_lanes(vec4 v) { return v.x + v.y + (v.z + v.w); }

// The squares of the distances of texel k of a row from its mean.
vec4 square_of(int base, int k, float mean) {
  vec4 v = TEXEL(base + k) - mean;
  v = MASKED(v, REST_OF(k, Z), size);
  return v * v;
}

void put_normalized(int base, int k, float mean, float scale) {
  vec4 v = (TEXEL(base + k) - mean) * scale;
  // Where one is missing, a single texel of anything is bound.
  vec4 factor = LOAD_FLAT(weight, has_weight != 0 ? k : 0);
  vec4 offset = LOAD_FLAT(bias, has_bias != 0 ? k : 0);
  v = has_weight != 0 ? v * factor : v;
  v = has_bias != 0 ? v + offset : v;
  STORE(result, AT_LINEAR(base + k, X, Y, Z), MASKED(v, REST_OF(k, Z), size));
}
