#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows of a cache replaced by those of a tensor, from a row on that is known when this runs. The
// cache is a buffer in every storage; the others of its rows stay as they are.
#include "tensor.glsl"
#include "params.glsl"

SSBO_OUT(0, cache, DTYPE)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Texels of a row; rows of the cache, and of the tensor.
PARAM(3, slab)
PARAM(4, rows)
PARAM(5, count)
#define POSITION_BINDING 2
#define POSITION_PARAM 6
#include "position.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  int first = position_at_most(rows - count);
  cache[first * slab + i] = PASTE(pack_, DTYPE)(LOAD(source, AT_LINEAR(i, X, Y, Z)));
}
