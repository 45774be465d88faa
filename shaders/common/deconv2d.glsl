// Transposed convolution with a register tile, see conv_tile.glsl, gathering: pixel x of the result
// is met by the taps kx for which x + padding - kx * dilation is a multiple of the stride. Pixels a
// stride apart (of one phase) are met by the same taps and by neighbours in the source, so a tile
// holds TILE_X pixels of one phase and no tap is tried in vain.
#include "conv_tile.glsl"
#include "taps.glsl"

void main() {
  int i = invocation();
  int phases_x = min(stride_x, out_X), phases_y = min(stride_y, out_H);
  // Pixels and rows of a phase, where it has most of them.
  int tiles = ((out_X + stride_x - 1) / stride_x + TILE_X - 1) / TILE_X;
  int phase_H = (out_H + stride_y - 1) / stride_y;
  int phase_rows = out_Y / out_H * phase_H;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  int groups = channels / group_channels;
  int each = tiles * phase_rows * blocks;
  if (i >= each * phases_x * phases_y * groups) return;
  // Invocations that run together are of one phase.
  int phase = i / each % (phases_x * phases_y);
  int phase_x = phase % phases_x, phase_y = phase / phases_x;
  int group = i / (each * phases_x * phases_y);
  ivec2 place = neighbours(i % each, tiles * phase_rows, blocks);
  int first = place.x % tiles * TILE_X;
  int row = place.x / tiles;
  int z = place.y * TILE_O;
  int image = row / phase_H, below = row % phase_H;
  if (phase_y + below * stride_y >= out_H) return;

  int begin = first_tap(phase_x + padding_x, stride_x, dilation_x, tap_step_x, kernel_x);
  int ky = first_tap(phase_y + padding_y, stride_y, dilation_y, tap_step_y, kernel_y);
  begin_tile(group, z);
  for (; ky < kernel_y; ky += tap_step_y) {
    int y = below + (phase_y + padding_y - ky * dilation_y) / stride_y;
    if (uint(y) >= uint(H)) continue;
    for (int kx = begin; kx < kernel_x; kx += tap_step_x) {
      int x = first + (phase_x + padding_x - kx * dilation_x) / stride_x;
      [[unroll]] for (int p = 0; p < TILE_X; p++) look_at(p, x + p, image * H + y, group);
      add_tap(ky * kernel_x + kx);
    }
  }
  store_tile(phase_x + first * stride_x, stride_x, image * out_H + phase_y + below * stride_y,
             group, z);
}
