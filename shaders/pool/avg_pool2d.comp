#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Mean of windows.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
#include "windows.glsl"
// What the sum is divided by: > 0: this; 0: elements of the window inside the image;
// -1: those inside the image or its padding.
PARAM(13, divisor)

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  int left = column * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  int right = min(left + kernel_x, X + padding_x);
  int bottom = min(top + kernel_y, H + padding_y);
  int area = (right - left) * (bottom - top);
  left = max(left, 0);
  top = max(top, 0);
  right = min(right, X);
  bottom = min(bottom, H);
  if (divisor >= 0) area = divisor > 0 ? divisor : (right - left) * (bottom - top);
  vec4 sum = vec4(0);
  for (int y = top; y < bottom; y++) {
    for (int x = left; x < right; x++) sum += LOAD(source, AT(x, image + y, z, X, Z));
  }
  // A window wholly in the padding (ceil_mode) is 0, as in torch.
  vec4 v = sum / float(max(area, 1));
  STORE(result, AT(column, row, z, out_X, Z), mask_padding(v, VALID(z, channels)));
}
