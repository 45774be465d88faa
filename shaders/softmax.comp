#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Softmax along one dimension, or its logarithm; an invocation does a whole row, so the result may
// lie over the source.
#define IS_PADDED(size) HAS_PADDING(size)
#include "softmax.glsl"

OUT(0, result)

void main() {
  int row = invocation();
  if (row >= rows) return;
  int base = ROW_BASE(row);
  vec4 top = row_top(base, 0, count);
  vec4 sum = row_sum(base, 0, count, top);
  int z = REST_OF(row, Z);
  for (int k = 0; k < count; k++) {
    int t = base + k * inner;
    vec4 v = softmax_of(TEXEL(t), top, sum);
    STORE(result, AT_LINEAR(t, X, Y, Z), MASKED(v, across != 0 ? k : z, size));
  }
}
