#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// For every element of a row how many of the row's come before it in order. Equal elements stay in
// their order, and no number is greater than every number.
#include "tensor.glsl"
#include "params.glsl"

OUT_AS(0, ranks, i32)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, descends)

#if defined(DTYPE_i32)
bvec4 none(ivec4 v) { return bvec4(false); }
#else
bvec4 none(vec4 v) { return isnan(v); }
#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row = DIVIDED(i, Z);
  T4 own = LOAD(source, AT_LINEAR(i, X, Y, Z));
  bvec4 no_number = none(own);
  ivec4 places = 4 * row.y + ivec4(0, 1, 2, 3);
  ivec4 rank = ivec4(0);
  for (int z = 0; z < Z; z++) {
    T4 v = LOAD(source, AT_LINEAR(row.x * Z + z, X, Y, Z));
    int valid = VALID(z, size);
    for (int lane = 0; lane < valid; lane++) {
      T4 other = T4(v[lane]);
      bool other_none = none(other).x;
      for (int k = 0; k < 4; k++) {
        bool less = !other_none && (no_number[k] || other[k] < own[k]);
        bool greater = !no_number[k] && (other_none || other[k] > own[k]);
        bool before = descends != 0 ? greater : less;
        rank[k] += int(before || (!less && !greater && 4 * z + lane < places[k]));
      }
    }
  }
  STORE_AS(ranks, AT_LINEAR(i, X, Y, Z), mask_padding(rank, VALID(row.y, size)), i32);
}
