#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Softmax along one dimension, or its logarithm; an invocation does a whole row, so the result may
// lie over the source.
//
// Lane by lane where the dimension is not packed: `count` places `inner` texels apart. Across the
// lanes where it is: `count` texels in a row, `inner` is 1.
#include "tensor.glsl"
#include "params.glsl"
#include "math.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, logarithm)
CASE(5, across)
PARAM(6, rows)
PARAM(7, count)
PARAM(8, inner)

#define TEXEL(t) LOAD(source, AT_LINEAR(t, X, Y, Z))

vec4 largest(vec4 u, vec4 v) { return mix(mix(u, v, greaterThan(v, u)), v, isnan(v)); }

// Texel k of the row, with `rest` in the place of padding lanes.
vec4 element(int base, int k, float rest) {
  vec4 v = TEXEL(base + k * inner);
  if (across != 0 && (size & 3) != 0 && k == count - 1) {
    v = mix(vec4(rest), v, lessThan(ivec4(0, 1, 2, 3), ivec4(size & 3)));
  }
  return v;
}

void main() {
  int i = invocation();
  if (i >= rows) return;
  int base = i / inner * count * inner + i % inner;
  vec4 top = element(base, 0, -INFINITY);
  for (int k = 1; k < count; k++) top = largest(top, element(base, k, -INFINITY));
  if (across != 0) {
    top = largest(top, top.zwxy);
    top = largest(top, top.yxwz);
  }
  vec4 sum = vec4(0);
  for (int block = 0; block < count; block += 64) {
    int stop = min(block + 64, count);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) part += exp_(element(base, k, -INFINITY) - top);
    sum += part;
  }
  if (across != 0) sum = vec4(sum.x + sum.y + (sum.z + sum.w));
  vec4 factor = 1.0 / sum;
  vec4 shift = logarithm != 0 ? log_(sum) : vec4(0);
  for (int k = 0; k < count; k++) {
    int t = base + k * inner;
    vec4 v = TEXEL(t) - top;
    v = logarithm != 0 ? v - shift : exp_(v) * factor;
    STORE(result, AT_LINEAR(t, X, Y, Z), mask_padding(v, VALID(across != 0 ? k : i % Z, size)));
  }
}
