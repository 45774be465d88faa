// Depthwise convolution: one filter per channel. One invocation computes TILE_X pixels along x of
// one texel of channels.
//
// Weights are a matrix: row = ky, columns = (kx, texel of channels).

#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
#include "image_sides.glsl"
PARAM(6, channels)
// Cases, so that the loop over kx unrolls and compilers see which pixels share loads (measured: as
// fast as sharing by hand).
CASE(7, kernel_x)
CASE(8, stride_x)
CASE(9, dilation_x)
PARAM(10, kernel_y)
PARAM(11, stride_y)
// A case because it divides and is what dilation_x is.
CASE(12, dilation_y)
PARAM(13, padding_x)
PARAM(14, padding_y)
#define VECTORS 3
#define ENDS 15
#include "ending.glsl"

void main() {
  int i = invocation();
  int tiles = (out_X + TILE_X - 1) / TILE_X;
  if (i >= tiles * out_Y * Z) return;
  ivec2 outer = DIVIDED(i, Z), row_tile = divided(outer.x, tiles, IS_CONSTANT(out_X));
  int z = outer.y;
  int first = row_tile.y * TILE_X;
  int row = row_tile.x;

  int left = first * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  // Kernel rows inside the image.
  int ky = (max(-top, 0) + dilation_y - 1) / dilation_y;
  int ky_end = min(kernel_y, (max(H - top, 0) + dilation_y - 1) / dilation_y);

  T4 sum[TILE_X];
  [[unroll]] for (int p = 0; p < TILE_X; p++) sum[p] = T4(0);
  for (; ky < ky_end; ky++) {
    int y = image + top + ky * dilation_y;
    [[unroll]] for (int kx = 0; kx < kernel_x; kx++) {
      T4 w = LOAD_WEIGHT(weight, WEIGHT_AT(ky, kx * Z + z, kernel_x * Z));
      [[unroll]] for (int p = 0; p < TILE_X; p++) {
        int x = left + (p * stride_x + kx * dilation_x);
        T4 v = source_of(LOAD(source, AT(clamp(x, 0, X - 1), y, z, X, Z)));
        if (uint(x) >= uint(X)) v = T4(0);
        sum[p] += v * w;
      }
    }
  }

  ENDING ending = ending_at(z);
  [[unroll]] for (int p = 0; p < TILE_X; p++) {
    if (first + p >= out_X) break;
    STORE(result, AT(first + p, row, z, out_X, Z), MASKED(ended(sum[p], ending), z, channels));
  }
}
