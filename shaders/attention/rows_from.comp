#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// A slice of one dimension, not the packed one, whose first index is known when this runs.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, source_X)
// Of the dimension: its size, how many indices are taken, rows of one index.
PARAM(4, size)
PARAM(5, count)
PARAM(6, inner)
#define POSITION_BINDING 2
#define POSITION_PARAM 7
#include "position.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, Z), outer_row = divided(row_texel.x, count * inner);
  int row = (outer_row.x * size + position_at_most(size - count)) * inner + outer_row.y;
  STORE(result, AT_LINEAR(i, X, Y, Z), LOAD(source, AT_ROW(row, row_texel.y, source_X, Z)));
}
