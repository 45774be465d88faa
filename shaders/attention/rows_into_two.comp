#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The same rows of two caches, of keys and of values: see rows_into.glsl.
#define POSITION_BINDING 4
#include "rows_into.glsl"

SSBO_OUT(0, keys, DTYPE)
SSBO_OUT(1, values, DTYPE)
IN(2, new_keys)
IN(3, new_values)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  int place = place_of(i);
  keys[place] = PASTE(pack_, DTYPE)(LOAD(new_keys, AT_LINEAR(i, X, Y, Z)));
  values[place] = PASTE(pack_, DTYPE)(LOAD(new_values, AT_LINEAR(i, X, Y, Z)));
}
