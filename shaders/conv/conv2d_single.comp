#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Convolution of one input channel, which lies row-major: packing a single channel into texels of
// 4 would take 4 times its bytes, and those of the weights. One invocation computes 4 channels of
// one pixel.
//
// Weights are a matrix: row = output channel, columns = (ky, texel of kx).
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
PARAM(0, W)
PARAM(1, H)
PARAM(2, out_X)
PARAM(3, out_H)
PARAM(4, out_Y)
PARAM(5, channels)
PARAM(6, kernel_x)
PARAM(7, kernel_y)
PARAM(8, stride_x)
PARAM(9, stride_y)
PARAM(10, padding_x)
PARAM(11, padding_y)
PARAM(12, dilation_x)
PARAM(13, dilation_y)
// Every 4 neighbouring taps of a row are one texel of the source.
CASE(14, is_aligned)
#define VECTORS 3
#define ENDS 15
#include "epilogue.glsl"

float element(int x, int y, int image) {
  if (uint(x) >= uint(W)) return 0.0;
  return LOAD(source, AT(y, image, x >> 2, H, (W + 3) / 4))[x & 3];
}

void main() {
  int i = invocation();
  int Z = (channels + 3) / 4;
  if (i >= out_X * out_Y * Z) return;
  // Neighbouring invocations share their weights.
  ivec2 outer = DIVIDED(i, out_X), rest = DIVIDED(outer.x, out_Y), image_row = DIVIDED(rest.y, out_H);
  int column = outer.y;
  int row = rest.y;
  int z = rest.x;
  int left = column * stride_x - padding_x;
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x;
  int texels = (kernel_x + 3) / 4;
  int last = channels - 1;

  vec4 sum = vec4(0);
  for (int ky = 0; ky < kernel_y; ky++) {
    int y = top + ky * dilation_y;
    if (uint(y) >= uint(H)) continue;
    for (int k = 0; k < texels; k++) {
      vec4 v;
      int x = left + 4 * k * dilation_x;
      if (is_aligned != 0 && x >= 0 && x + 3 < W) {
        v = LOAD(source, AT(y, image, x >> 2, H, (W + 3) / 4));
      } else {
        v = vec4(element(x, y, image), element(x + dilation_x, y, image),
                 element(x + 2 * dilation_x, y, image), element(x + 3 * dilation_x, y, image));
      }
      // Taps beyond the kernel meet the zeros that pad its rows, and 0 * NaN is NaN.
      v = mask_padding(v, VALID(k, kernel_x));
      int at = ky * texels + k, columns = kernel_y * texels;
      sum += vec4(dot(v, LOAD_WEIGHT(weight, WEIGHT_AT(4 * z, at, columns))),
                  dot(v, LOAD_WEIGHT(weight, WEIGHT_AT(min(4 * z + 1, last), at, columns))),
                  dot(v, LOAD_WEIGHT(weight, WEIGHT_AT(min(4 * z + 2, last), at, columns))),
                  dot(v, LOAD_WEIGHT(weight, WEIGHT_AT(min(4 * z + 3, last), at, columns))));
    }
  }
  STORE(result, AT(column, row, z, out_X, Z),
        mask_padding(ended(sum, epilogue_at(z)), VALID(z, channels)));
}
