#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Transposed convolution with any groups, element by element: for channels per group that are not
// whole texels. One invocation computes one texel. Weights and parameters are those of
// deconv2d.glsl.
#include "conv_params.glsl"
#include "taps.glsl"

// The products of the pixel (x, y) with one tap, for the channels of texel z.
vec4 products(int x, int y, int z, int tap) {
  int texels = (group_inputs + 3) / 4;
  vec4 sum = vec4(0);
  int lanes = VALID(z, channels);
  for (int lane = 0; lane < lanes; lane++) {
    int o = 4 * z + lane;
    int inputs = o / group_channels * group_inputs;
    for (int c = 0; c < group_inputs; c++) {
      int e = inputs + c;
      POSITION w = WEIGHT_AT(o, tap * texels + (c >> 2), kernel_y * kernel_x * texels);
      sum[lane] += LOAD(source, AT(x, y, e >> 2, X, Z))[e & 3] * LOAD_WEIGHT(weight, w)[c & 3];
    }
  }
  return sum;
}

void main() {
  int i = invocation();
  int out_Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * out_Z) return;
  int z = i % out_Z;
  int column = i / out_Z % out_X + padding_x;
  int row = i / (out_Z * out_X);
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
      v += products(x, image + y, z, ky * kernel_x + kx);
    }
  }
  if (has_clamp != 0) v = clamp(v, low, high);
  STORE(result, AT_LINEAR(i, out_X, out_Y, out_Z), mask_padding(v, VALID(z, channels)));
}
