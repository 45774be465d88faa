// Convolution with a register tile, see conv_tile.glsl: TILE_X neighbouring pixels along x.
#include "conv_tile.glsl"

void main() {
  int i = invocation();
  int tiles = (out_X + TILE_X - 1) / TILE_X;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  int groups = channels / group_channels;
  if (i >= tiles * out_Y * blocks * groups) return;
  int each = tiles * out_Y * blocks;
  int group = i / each;
  ivec2 place = neighbours(i % each, tiles * out_Y, blocks);
  int first = place.x % tiles * TILE_X;
  int row = place.x / tiles;
  int z = place.y * TILE_O;

  int left = first * stride_x - padding_x;
  int top = row % out_H * stride_y - padding_y;
  int image = row / out_H * H;
  // Kernel rows inside the image.
  int ky = top < 0 ? (-top + dilation_y - 1) / dilation_y : 0;
  int ky_end = min(kernel_y, (H - top + dilation_y - 1) / dilation_y);

  begin_tile(group, z);
  for (; ky < ky_end; ky++) {
    int y = image + top + ky * dilation_y;
    for (int kx = 0; kx < kernel_x; kx++) {
      [[unroll]] for (int p = 0; p < TILE_X; p++) {
        look_at(p, left + p * stride_x + kx * dilation_x, y, group);
        if (padding_x == 0) inside[p] = true;
      }
      add_tap(ky * kernel_x + kx);
    }
  }
  store_tile(first, 1, row, group, z);
}
