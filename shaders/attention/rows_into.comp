#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 f32:i8 f16:i8
#extension GL_GOOGLE_include_directive : require
// Rows of one cache: see rows_into.glsl. A cache of 8 bits has an invocation for each head (cache.glsl).
#define POSITION_BINDING 2
#include "rows_into.glsl"

SSBO_OUT(0, cache, DTYPE_OUT)
IN(1, source)

void main() {
  int i = invocation();
#ifdef CACHE_IN_8_BITS
  if (i >= X * Y) return;
#define TEXEL(z) LOAD(source, AT_LINEAR(i * Z + z, X, Y, Z))
  WRITE_HEAD(cache, place_of(i * HEAD_TEXELS), TEXEL)
#else
  if (i >= X * Y * Z) return;
  cache[place_of(i)] = PASTE(pack_, DTYPE)(LOAD(source, AT_LINEAR(i, X, Y, Z)));
#endif
}
