#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// 3x3 weights at the points of winograd.glsl: for each pair of points (y, x) a matrix of output
// channels by input channels. One invocation makes 4 input channels of an output channel at all
// points, which takes 72 registers and more; or those of one of the six y, which takes 24.
#include "tensor.glsl"
#include "params.glsl"
#include "winograd.glsl"

OUT(0, result)
WEIGHT(1, weight)
// Output channels to bring there, texels of input channels, and the first output channel
PUSHED(0, channels)
PUSHED(1, texels)
PUSHED(2, first_channel)
// Invocations that make a weight: 1 or 6
CASE(3, parts)

vec4 weight_of(int row, int y, int x, int z) {
  return LOAD_WEIGHT(weight, WEIGHT_AT(first_channel + row, (3 * y + x) * texels + z, 9 * texels));
}

void main() {
  int i = invocation();
  int point = 0;
  if (parts > 1) {
    ivec2 point_rest = divided(i, channels * texels);
    point = point_rest.x;
    i = point_rest.y;
    if (point >= POINTS) return;
  } else if (i >= channels * texels) return;
  ivec2 row_texel = divided(i, texels);
  int row = row_texel.x, z = row_texel.y;
  if (parts > 1) {
    // What weights_to_points makes of a column for this y
    vec4 column[3], v[POINTS];
    float to_own = point < 3 ? TO_A : TO_B, own = point < 3 ? A : B;
    [[unroll]] for (int x = 0; x < 3; x++) {
      vec4 first = weight_of(row, 0, x, z), last = weight_of(row, 2, x, z);
      vec4 odd = to_own * own * weight_of(row, 1, x, z);
      column[x] = to_own * (first + own * own * last) + (point % 2 == 1 ? odd : -odd);
      if (point == 0) column[x] = first / (AA * BB);
      if (point == POINTS - 1) column[x] = last;
    }
    weights_to_points(column, v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(row, POINTS * point + x, z, channels, texels), v[x]);
    return;
  }
  vec4 half_way[3][POINTS];
  [[unroll]] for (int x = 0; x < 3; x++) {
    vec4 g[3];
    [[unroll]] for (int y = 0; y < 3; y++) g[y] = weight_of(row, y, x, z);
    weights_to_points(g, half_way[x]);
  }
  [[unroll]] for (int y = 0; y < POINTS; y++) {
    vec4 v[POINTS];
    weights_to_points(vec4[](half_way[0][y], half_way[1][y], half_way[2][y]), v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(row, POINTS * y + x, z, channels, texels), v[x]);
  }
}
