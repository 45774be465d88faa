// Transposed convolution with a register tile, see conv_tile.glsl, gathering: pixel x of the result
// is met by the taps kx for which x + padding - kx * dilation is a multiple of the stride. Pixels a
// stride apart (of one phase) are met by the same taps and by neighbours in the source, so a tile
// holds TILE_X pixels of one phase and no tap is tried in vain.
#include "conv_tile.glsl"
#include "taps.glsl"

void main() {
  int i = numbered();
  int phases_x = min(stride_x, out_X), phases_y = min(stride_y, out_H);
  // Pixels and rows of a phase, where it has most of them.
  int tiles = (EXACT_QUOTIENT(out_X + stride_x - 1, stride_x) + TILE_X - 1) / TILE_X;
  int phase_H = EXACT_QUOTIENT(out_H + stride_y - 1, stride_y);
  int phase_rows = QUOTIENT(out_Y, out_H) * phase_H;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  int groups = QUOTIENT(channels, group_channels);
  // Of LANES invocations each.
  int places = (tiles * phase_rows + LANES - 1) / LANES;
  int each = places * blocks;
  if (i >= LANES * each * phases_x * phases_y * groups) return;
  // Invocations that run together are of one phase.
  bool is_constant = IS_CONSTANT(out_X);
  ivec2 outer = divided(i / LANES, each, is_constant);
  ivec2 group_phase = divided(outer.x, phases_x * phases_y, is_constant);
  ivec2 phase = divided(group_phase.y, phases_x, is_constant);
  int phase_x = phase.y, phase_y = phase.x;
  int group = group_phase.x;
  ivec2 place = neighbours(outer.y, places, blocks, is_constant);
  // Lanes beyond the last tile do that too.
  int number =
    LANES == 1 ? place.x : min(place.x * LANES + i % LANES, tiles * phase_rows - 1);
  ivec2 row_tile = divided(number, tiles, is_constant);
  int first = row_tile.y * TILE_X;
  int z = place.y * TILE_O;
  ivec2 image_row = divided(row_tile.x, phase_H, is_constant);
  int image = image_row.x, below = image_row.y;
  bool is_row = phase_y + below * stride_y < out_H;
  if (LANES == 1 && !is_row) return;

  Taps along_x = TAPS(phase_x + padding_x, x), along_y = TAPS(phase_y + padding_y, y);
  begin_tile(group, z);
  int y = below + along_y.from;
  for (int ky = along_y.first; ky < kernel_y; ky += tap_step_y, y -= along_y.step) {
    bool is_met = uint(y) < uint(H);
    if (LANES == 1 && !is_met) continue;
    int x = first + along_x.from;
    for (int kx = along_x.first; kx < kernel_x; kx += tap_step_x, x -= along_x.step) {
      if (LANES == 1 && (x + TILE_X <= 0 || x >= X)) continue;
      // Where a row is met by other lanes only, every pixel counts as outside.
      [[unroll]] for (int p = 0; p < TILE_X; p++)
        look_at(p, is_met ? x + p : -1, image * H + (LANES == 1 ? y : clamp(y, 0, H - 1)), group);
      add_tap(ky * kernel_x + kx);
    }
  }
  if (!is_row) return;
  store_tile(phase_x + first * stride_x, stride_x, image * out_H + phase_y + below * stride_y,
             group, z);
}
