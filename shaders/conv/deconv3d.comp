#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Transposed convolution over three spatial dimensions with any groups, element by element: sums the
// taps that meet a pixel, see taps.glsl.
#include "conv_params.glsl"
#include "taps.glsl"
#include "volume.glsl"
#include "volume_products.glsl"
PARAM(31, tap_step_z)

void main() {
  int i = invocation();
  int out_Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * out_Z) return;
  ivec2 outer = divided(i, out_Z, IS_CONSTANT(channels)), pixel = DIVIDED(outer.x, out_X);
  int z = outer.y;
  ivec3 volume = volume_of(pixel.x);
  Taps along_x = TAPS(pixel.y + padding_x, x);
  Taps along_y = taps_of(volume.z + padding_y, stride_y, dilation_y, tap_step_y, kernel_h,
                         IS_CONSTANT(stride_y));
  Taps along_z = TAPS(volume.y + padding_z, z);
  vec4 sum = vec4(0);
  int slice = along_z.from;
  for (int kz = along_z.first; kz < kernel_z; kz += tap_step_z, slice -= along_z.step) {
    if (uint(slice) >= uint(D)) continue;
    int y = along_y.from;
    for (int ky = along_y.first; ky < kernel_h; ky += tap_step_y, y -= along_y.step) {
      if (uint(y) >= uint(H)) continue;
      int x = along_x.from;
      for (int kx = along_x.first; kx < kernel_x; kx += tap_step_x, x -= along_x.step) {
        if (uint(x) >= uint(X)) continue;
        sum += products(x, volume.x + slice * H + y, z, (kz * kernel_h + ky) * kernel_x + kx);
      }
    }
  }
  STORE(result, AT(pixel.y, pixel.x, z, out_X, out_Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
