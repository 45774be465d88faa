// Convolution with a register tile, see conv_tile.glsl: TILE_X neighbouring pixels along x.
#include "conv_tile.glsl"

void main() {
  int i = invocation();
  int tiles = (out_X + TILE_X - 1) / TILE_X;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  int groups = QUOTIENT(channels, group_channels);
  int each = tiles * out_Y * blocks;
  if (i >= each * groups) return;
  bool is_constant = IS_CONSTANT(out_X);
  ivec2 group_place = divided(i, each, is_constant);
  int group = group_place.x;
  ivec2 place = neighbours(group_place.y, tiles * out_Y, blocks, is_constant);
  ivec2 row_tile = divided(place.x, tiles, is_constant);
  int first = row_tile.y * TILE_X;
  int row = row_tile.x;
  int z = place.y * TILE_O;

  int left = first * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  // Kernel rows inside the image.
  int ky = EXACT_QUOTIENT(max(-top, 0) + dilation_y - 1, dilation_y);
  int ky_end = min(kernel_y, EXACT_QUOTIENT(max(H - top, 0) + dilation_y - 1, dilation_y));

  begin_tile(group, z);
  for (; ky < ky_end; ky++) {
    int y = image + top + ky * dilation_y;
    for (int kx = 0; kx < kernel_x; kx++) {
      [[unroll]] for (int p = 0; p < TILE_X; p++) {
        look_at(p, left + p * stride_x + kx * dilation_x, y, group);
        if (padding_x == 0) inside[p] = ~0u;
      }
      add_tap(ky * kernel_x + kx);
    }
  }
  store_tile(first, 1, row, group, z);
}
