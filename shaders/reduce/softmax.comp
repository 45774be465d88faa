#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Softmax along one dimension, or its logarithm; an invocation does a whole row, so the result may
// lie over the source.
#define IS_PADDED(size) HAS_PADDING(size)
#extension GL_EXT_control_flow_attributes : require
#include "softmax.glsl"
// Whether a row has up to KEPT texels: they are read, and the exponential function of them is
// computed, once and not two or three times (measured on rows of 16 elements: 0.74 of the time).
CASE(9, is_short)
#define KEPT 4

ALIASED OUT(0, result)

void short_row(int base, int z) {
  // Beyond the row's end its last texel again, which adds nothing.
  vec4 v[KEPT], weight[KEPT], top, sum = vec4(0);
  [[unroll]] for (int k = 0; k < KEPT; k++) {
    v[k] = element(base, min(k, count - 1));
    top = k == 0 ? v[k] : largest(top, v[k]);
  }
  top = of_row_top(top);
  [[unroll]] for (int k = 0; k < KEPT; k++) {
    weight[k] = exp_(v[k] - top);
    sum += k < count ? weight[k] : vec4(0);
  }
  sum = of_row_sum(sum);
  [[unroll]] for (int k = 0; k < KEPT; k++) {
    vec4 share = softmax_of(v[k], weight[k], top, sum);
    // Not a break: V3D's compiler does not unroll a loop with one, and then the row lies in memory.
    if (k < count)
      STORE(result, AT_LINEAR(base + k * inner, X, Y, Z), MASKED(share, across != 0 ? k : z, size));
  }
}

void main() {
  int row = invocation();
  if (row >= rows) return;
  int base = ROW_BASE(row), z = REST_OF(row, Z);
  if (is_short != 0) {
    short_row(base, z);
    return;
  }
  vec4 top = row_top(base, 0, count);
  vec4 sum = row_sum(base, 0, count, top);
  for (int k = 0; k < count; k++) {
    int t = base + k * inner;
    vec4 v = softmax_of(TEXEL(t), top, sum);
    STORE(result, AT_LINEAR(t, X, Y, Z), MASKED(v, across != 0 ? k : z, size));
  }
}
