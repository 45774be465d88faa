#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Normalization of rows of `count` texels to mean 0 and variance 1, then scale and shift; an
// invocation does a whole row, so the result may lie over the source.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

OUT(0, result)
IN(1, source)
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

void main() {
  int row = invocation();
  if (row >= rows) return;
  int base = row * count;
  vec4 sum = vec4(0);
  for (int block = 0; block < count; block += 64) {
    int stop = min(block + 64, count);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) part += TEXEL(base + k);
    sum += part;
  }
  float mean = across_lanes(sum) / float(length);
  sum = vec4(0);
  for (int block = 0; block < count; block += 64) {
    int stop = min(block + 64, count);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) {
      vec4 v = TEXEL(base + k) - mean;
      v = MASKED(v, REST_OF(k, Z), size);
      part += v * v;
    }
    sum += part;
  }
  float scale = 1.0 / sqrt(across_lanes(sum) / float(length) + epsilon);
  for (int k = 0; k < count; k++) {
    vec4 v = (TEXEL(base + k) - mean) * scale;
    // Where one is missing, a single texel of anything is bound.
    vec4 factor = LOAD_FLAT(weight, has_weight != 0 ? k : 0);
    vec4 offset = LOAD_FLAT(bias, has_bias != 0 ? k : 0);
    v = has_weight != 0 ? v * factor : v;
    v = has_bias != 0 ? v + offset : v;
    STORE(result, AT_LINEAR(base + k, X, Y, Z), MASKED(v, REST_OF(k, Z), size));
  }
}
