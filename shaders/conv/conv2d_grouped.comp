#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16
#extension GL_GOOGLE_include_directive : require
// Convolution with any groups, element by element: for channels per group that are not whole
// texels. One invocation computes one texel. Weights and parameters are those of conv2d.glsl.
#include "conv_params.glsl"

T channel(int o, int left, int top, int image) {
  int inputs = QUOTIENT(o, group_channels) * group_inputs;
  int texels = (group_inputs + 3) / 4;
  T sum = T(0);
  for (int ky = 0; ky < kernel_y; ky++) {
    int y = top + ky * dilation_y;
    for (int kx = 0; kx < kernel_x; kx++) {
      int x = left + kx * dilation_x;
      bool inside = uint(x) < uint(X) && uint(y) < uint(H);
      int column = (ky * kernel_x + kx) * texels;
      for (int c = 0; c < group_inputs; c++) {
        int e = inputs + c;
        POSITION at = AT(clamp(x, 0, X - 1), image + clamp(y, 0, H - 1), e >> 2, X, Z);
        T v = source_of(LOAD(source, at)[e & 3]);
        POSITION w = WEIGHT_AT(o, column + (c >> 2), kernel_y * kernel_x * texels);
        sum += inside ? v * LOAD_WEIGHT(weight, w)[c & 3] : T(0);
      }
    }
  }
  return sum;
}

void main() {
  int i = invocation();
  int out_Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * out_Z) return;
  ivec2 outer = divided(i, out_Z, IS_CONSTANT(channels)), pixel = DIVIDED(outer.x, out_X);
  int z = outer.y;
  int column = pixel.y;
  int row = pixel.x;
  int left = column * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  T4 sum = T4(0);
  for (int k = 0; k < VALID(z, channels); k++) sum[k] = channel(4 * z + k, left, top, image);
  STORE(result, AT(column, row, z, out_X, out_Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
