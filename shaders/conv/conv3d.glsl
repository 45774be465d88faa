// Convolution over three spatial dimensions with a register tile, see conv_tile.glsl: TILE_X
// neighbouring pixels along x.
#include "conv_tile.glsl"
#include "volume.glsl"

void main() {
  int i = invocation();
  ivec3 tiles = tile_counts();
  if (i >= tiles.z * QUOTIENT(channels, group_channels)) return;
  ivec4 tile = tile_of(i, tiles);
  int group = tile.x, row = tile.y, first = tile.z, z = tile.w;

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
