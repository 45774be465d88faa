#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// 3x3 weights at the points of winograd.glsl: for each pair of points (y, x) a matrix of output
// channels by input channels. One invocation makes 4 input channels of an output channel.
#include "tensor.glsl"
#include "params.glsl"
#include "winograd.glsl"

OUT(0, result)
WEIGHT(1, weight)
PUSHED(0, channels)
PUSHED(1, texels)

void main() {
  int i = invocation();
  if (i >= channels * texels) return;
  ivec2 row_texel = divided(i, texels);
  int row = row_texel.x, z = row_texel.y;
  vec4 half_way[3][POINTS];
  [[unroll]] for (int x = 0; x < 3; x++) {
    vec4 g[3];
    [[unroll]] for (int y = 0; y < 3; y++)
      g[y] = LOAD_WEIGHT(weight, WEIGHT_AT(row, (3 * y + x) * texels + z, 9 * texels));
    weights_to_points(g, half_way[x]);
  }
  [[unroll]] for (int y = 0; y < POINTS; y++) {
    vec4 v[POINTS];
    weights_to_points(vec4[](half_way[0][y], half_way[1][y], half_way[2][y]), v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(row, POINTS * y + x, z, channels, texels), v[x]);
  }
}
