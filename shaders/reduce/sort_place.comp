#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// The first elements of rows in order, and where they were, from the rank of every element.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, values)
OUT_AS(1, indices, i32)
IN(2, source)
IN_AS(3, ranks, i32)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, source_Z)
PARAM(5, count)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row = DIVIDED(i, Z);
  ivec4 found = ivec4(0);
  for (int z = 0; z < source_Z; z++) {
    ivec4 rank = LOAD_AS(ranks, AT_LINEAR(row.x * source_Z + z, X, Y, source_Z), i32) - 4 * row.y;
    int valid = VALID(z, count);
    for (int lane = 0; lane < valid; lane++) {
      for (int k = 0; k < 4; k++) if (rank[lane] == k) found[k] = 4 * z + lane;
    }
  }
  int valid = VALID(row.y, size);
  T4 v = T4(0);
  for (int k = 0; k < valid; k++) {
    int t = row.x * source_Z + (found[k] >> 2);
    v[k] = LOAD(source, AT_LINEAR(t, X, Y, source_Z))[found[k] & 3];
  }
  STORE(values, AT_LINEAR(i, X, Y, Z), v);
  STORE_AS(indices, AT_LINEAR(i, X, Y, Z), mask_padding(found, valid), i32);
}
