#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Convolution over three spatial dimensions with any groups, element by element: for channels per
// group that are not whole texels. Weights and parameters are those of conv3d.glsl.
#include "conv_params.glsl"
#include "volume.glsl"
#include "volume_products.glsl"

void main() {
  int i = invocation();
  int out_Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * out_Z) return;
  ivec2 outer = divided(i, out_Z, IS_CONSTANT(channels)), pixel = DIVIDED(outer.x, out_X);
  int z = outer.y;
  ivec3 volume = volume_of(pixel.x);
  ivec3 first = ivec3(pixel.y, volume.zy) * ivec3(stride_x, stride_y, stride_z)
      - ivec3(padding_x, padding_y, padding_z);
  vec4 sum = vec4(0);
  for (int kz = 0; kz < kernel_z; kz++) {
    int slice = first.z + kz * dilation_z;
    if (uint(slice) >= uint(D)) continue;
    for (int ky = 0; ky < kernel_h; ky++) {
      int y = first.y + ky * dilation_y;
      if (uint(y) >= uint(H)) continue;
      for (int kx = 0; kx < kernel_x; kx++) {
        int x = first.x + kx * dilation_x;
        if (uint(x) >= uint(X)) continue;
        sum += products(x, volume.x + slice * H + y, z, (kz * kernel_h + ky) * kernel_x + kx);
      }
    }
  }
  STORE(result, AT(pixel.y, pixel.x, z, out_X, out_Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
