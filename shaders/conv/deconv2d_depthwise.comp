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
  ivec3 spot = pixel_of(i);
  int z = spot.z;
  ivec2 image_row = image_of(spot.y);
  int image = image_row.x * H;
  Taps along_x = TAPS(spot.x + padding_x, x), along_y = TAPS(image_row.y + padding_y, y);
  T4 sum = T4(0);
  int y = along_y.from;
  for (int ky = along_y.first; ky < kernel_y; ky += tap_step_y, y -= along_y.step) {
    if (uint(y) >= uint(H)) continue;
    int x = along_x.from;
    for (int kx = along_x.first; kx < kernel_x; kx += tap_step_x, x -= along_x.step) {
      if (uint(x) >= uint(X)) continue;
      T4 w = LOAD_WEIGHT(weight, WEIGHT_AT(ky, kx * Z + z, kernel_x * Z));
      sum += source_of(LOAD(source, AT(x, image + y, z, X, Z))) * w;
    }
  }
  STORE(result, AT(spot.x, spot.y, z, out_X, Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
