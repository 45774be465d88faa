#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows rounded to what 8 bits hold of them, by a scale and a zero point for each row, as floats.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN(2, scales)
IN_AS(3, zero_points, i8)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
// Of the scales and zero points: the size of their packed dimension, and the grid.
PARAM(4, last)
PARAM(5, scales_X)
PARAM(6, scales_Y)
PARAM(7, scales_Z)
#include "quantized_row.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, Z), outer_lane = DIVIDED(row_texel.x, last);
  int lane = outer_lane.y & 3;
  int t = outer_lane.x * scales_Z + (outer_lane.y >> 2);
  POSITION from = AT_LINEAR(t, scales_X, scales_Y, scales_Z);
  float scale = LOAD(scales, from)[lane];
  float zero_point = float(LOAD_AS(zero_points, from, i8)[lane]);
  POSITION at = AT_LINEAR(i, X, Y, Z);
  vec4 v = through_8_bits(LOAD(source, at), scale, zero_point);
  STORE(result, at, mask_padding(v, VALID(row_texel.y, size)));
}
