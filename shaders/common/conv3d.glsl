// Convolution over three spatial dimensions with a register tile, see conv_tile.glsl: TILE_X
// neighbouring pixels along x.
#include "conv_tile.glsl"
#include "volume.glsl"

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

  ivec3 volume = volume_of(row);
  int left = first * stride_x - padding_x;
  int top = volume.z * stride_y - padding_y;
  int front = volume.y * stride_z - padding_z;

  begin_tile(group, z);
  for (int kz = 0; kz < kernel_z; kz++) {
    int slice = front + kz * dilation_z;
    if (uint(slice) >= uint(D)) continue;
    for (int ky = 0; ky < kernel_h; ky++) {
      int y = top + ky * dilation_y;
      if (uint(y) >= uint(H)) continue;
      for (int kx = 0; kx < kernel_x; kx++) {
        [[unroll]] for (int p = 0; p < TILE_X; p++)
          look_at(p, left + p * stride_x + kx * dilation_x, volume.x + slice * H + y, group);
        add_tap((kz * kernel_h + ky) * kernel_x + kx);
      }
    }
  }
  store_tile(first, 1, row, group, z);
}
