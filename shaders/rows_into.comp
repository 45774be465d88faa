#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows of one cache: see rows_into.glsl.
#define POSITION_BINDING 2
#include "rows_into.glsl"

SSBO_OUT(0, cache, DTYPE)
IN(1, source)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  cache[place_of(i)] = PASTE(pack_, DTYPE)(LOAD(source, AT_LINEAR(i, X, Y, Z)));
}
