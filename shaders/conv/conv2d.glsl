// Convolution with a register tile, see conv_tile.glsl: TILE_X neighbouring pixels along x.
#include "conv_tile.glsl"

void main() {
  int i = numbered();
  ivec3 tiles = tile_counts();
  if (i >= LANES * tiles.z * QUOTIENT(channels, group_channels)) return;
  ivec4 tile = tile_of(i, tiles);
  int group = tile.x, row = tile.y, first = tile.z, z = tile.w;

  int left = first * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  // Kernel rows inside the image, of any lane.
  int ky = EXACT_QUOTIENT(max(-top, 0) + dilation_y - 1, dilation_y);
  int ky_end = min(kernel_y, EXACT_QUOTIENT(max(H - top, 0) + dilation_y - 1, dilation_y));
  OF_ALL_LANES(ky, min)
  OF_ALL_LANES(ky_end, max)

  begin_tile(group, z);
  for (; ky < ky_end; ky++) {
    int y = top + ky * dilation_y;
    bool is_met = LANES == 1 || uint(y) < uint(H);
    y = image + (LANES == 1 ? y : clamp(y, 0, H - 1));
    for (int kx = 0; kx < kernel_x; kx++) {
      // Where a row is met by other lanes only, every pixel counts as outside.
      [[unroll]] for (int p = 0; p < TILE_X; p++)
        look_at(p, is_met ? left + p * stride_x + kx * dilation_x : -1, y, group);
      add_tap(ky * kernel_x + kx);
    }
  }
  store_tile(first, 1, row, group, z);
}
