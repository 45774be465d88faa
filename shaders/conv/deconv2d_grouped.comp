#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8
#extension GL_GOOGLE_include_directive : require
// Transposed convolution with any groups, element by element: for channels per group that are not
// whole texels. One invocation computes one texel. Weights and parameters are those of
// deconv2d.glsl.
#include "conv_params.glsl"
#include "taps.glsl"

// The products of the pixel (x, y) with one tap, for the channels of texel z.
T4 products(int x, int y, int z, int tap) {
  int texels = (group_inputs + 3) / 4;
  T4 sum = T4(0);
  int lanes = VALID(z, channels);
  for (int lane = 0; lane < lanes; lane++) {
    int o = 4 * z + lane;
    int inputs = QUOTIENT(o, group_channels) * group_inputs;
    for (int c = 0; c < group_inputs; c++) {
      int e = inputs + c;
      POSITION w = WEIGHT_AT(o, tap * texels + (c >> 2), kernel_y * kernel_x * texels);
      sum[lane] += source_of(LOAD(source, AT(x, y, e >> 2, X, Z))[e & 3])
          * LOAD_WEIGHT(weight, w)[c & 3];
    }
  }
  return sum;
}

void main() {
  int i = invocation();
  int out_Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * out_Z) return;
  ivec2 outer = divided(i, out_Z, IS_CONSTANT(channels)), pixel = DIVIDED(outer.x, out_X);
  ivec3 at = ivec3(pixel.yx, outer.y);
  int z = at.z;
  ivec2 image_row = image_of(at.y);
  int image = image_row.x * H;
  Taps along_x = TAPS(at.x + padding_x, x), along_y = TAPS(image_row.y + padding_y, y);
  T4 sum = T4(0);
  int y = along_y.from;
  for (int ky = along_y.first; ky < kernel_y; ky += tap_step_y, y -= along_y.step) {
    if (uint(y) >= uint(H)) continue;
    int x = along_x.from;
    for (int kx = along_x.first; kx < kernel_x; kx += tap_step_x, x -= along_x.step) {
      if (uint(x) >= uint(X)) continue;
      sum += products(x, image + y, z, ky * kernel_x + kx);
    }
  }
  STORE(result, AT(at.x, at.y, z, out_X, out_Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
