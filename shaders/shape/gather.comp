#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// One element for every integer: that of the same place but for one dimension, where the integer
// (negative: from the end; limited to the dimension's `count`) says which.
//
// The result and the integers have the same sizes and order. They are read along their dimensions,
// innermost first: strides are those of the source, 0 for the dimension the integers go along.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN_AS(2, places, i32)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, source_X)
PARAM(5, source_Y)
PARAM(6, source_Z)
PARAM(7, count)
PARAM(8, stride)
CASE(9, dims)
#define STRIDED_SIZES 10
#include "strided_index.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 chosen = LOAD_AS(places, AT_LINEAR(i, X, Y, Z), i32);
  chosen = clamp(mix(chosen, chosen + count, lessThan(chosen, ivec4(0))), 0, count - 1);
  ivec2 row_texel = DIVIDED(i, Z);
  int valid = VALID(row_texel.y, size);
  int place = strided_index(row_texel.x * size + row_texel.y * 4);
  T4 v = T4(0);
  for (int lane = 0; lane < valid; lane++) {
    int s = place + chosen[lane] * stride;
    v[lane] = LOAD(source, AT_LINEAR(s >> 2, source_X, source_Y, source_Z))[s & 3];
    place = next_strided_index(place);
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), v);
}
