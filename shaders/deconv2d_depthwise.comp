#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Transposed depthwise convolution: one filter per channel. One invocation computes one texel.
//
// Weights are a matrix: row = ky, columns = (kx, texel of channels).
#include "conv_params.glsl"
#include "taps.glsl"

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  int z = i % Z;
  int column = i / Z % out_X + padding_x;
  int row = i / (Z * out_X);
  int below = row % out_H + padding_y;
  int image = row / out_H * H;
  int begin = first_tap(column, stride_x, dilation_x, tap_step_x, kernel_x);
  int ky = first_tap(below, stride_y, dilation_y, tap_step_y, kernel_y);
  vec4 v = has_bias != 0 ? LOAD_FLAT(bias, z) : vec4(0);
  for (; ky < kernel_y; ky += tap_step_y) {
    int y = (below - ky * dilation_y) / stride_y;
    if (uint(y) >= uint(H)) continue;
    for (int kx = begin; kx < kernel_x; kx += tap_step_x) {
      int x = (column - kx * dilation_x) / stride_x;
      if (uint(x) >= uint(X)) continue;
      vec4 w = LOAD_WEIGHT(weight, WEIGHT_AT(ky, kx * Z + z, kernel_x * Z));
      v += LOAD(source, AT(x, image + y, z, X, Z)) * w;
    }
  }
  if (has_clamp != 0) v = clamp(v, low, high);
  STORE(result, AT_LINEAR(i, out_X, out_Y, Z), mask_padding(v, VALID(z, channels)));
}
