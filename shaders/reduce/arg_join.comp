#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:i32 f16:i32 i32
#extension GL_GOOGLE_include_directive : require
// Of the extremes of all parts the first, see arg_reduce.glsl.
#include "arg_reduce.glsl"

IN_AS(2, partial, i32)
PARAM(14, partial_X)
PARAM(15, partial_Y)

// What lane `lane` of the result's texel i has at `index`.
T element(int i, int lane, int index) {
  return across != 0 ? TEXEL(TEXELS_BASE(i, lane) + index / 4)[index & 3]
                     : TEXEL(PLACES_BASE(i) + index * inner)[lane];
}

void main() {
  int i = invocation();
  int texels = X * Y * Z;
  if (i >= texels) return;
  int lanes = VALID(REST_OF(i, Z), size);
  ivec4 v = ivec4(0);
  for (int lane = 0; lane < lanes; lane++) {
    v[lane] = LOAD_AS(partial, AT_LINEAR(i, partial_X, partial_Y, Z), i32)[lane];
    T best = element(i, lane, v[lane]);
    for (int p = 1; p < parts; p++) {
      int index = LOAD_AS(partial, AT_LINEAR(p * texels + i, partial_X, partial_Y, Z), i32)[lane];
      T other = element(i, lane, index);
      if (better(other, best)) {
        best = other;
        v[lane] = index;
      }
    }
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), v);
}
