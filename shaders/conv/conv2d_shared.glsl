// Convolution as a product of pixels with the weight, by workgroups that share tiles of both
// (shared_tile.glsl): the summed dimension runs over (ky, kx, texel of input channels of the group), as
// the rows of the weight do (conv_tile.glsl). Rows of the product are pixels of the result, those of
// all images, one row after the other.
#include "conv_params.glsl"
#include "words.glsl"
#include "shared_tile.glsl"

// Of a line: where the kernel's first tap lies in the source (x, y), and the row where that image
// begins.
KEPT(ivec3, corner)
int group, first_channel, right, down, channel, column;

void look_at(int k) {
  ivec2 tap = DIVIDED(k, group_inputs);
  ivec2 place = DIVIDED(tap.x, kernel_x);
  right = place.y * dilation_x;
  down = place.x * dilation_y;
  channel = group * group_inputs + tap.y;
  column = k;
}

#if defined(DTYPE_i32)
// Words of 4 zeros of the source.
#define OUTSIDE ivec4(0x01010101 * (source_zero & 255))
#elif defined(DTYPE_i8)
#define OUTSIDE ivec4(source_zero)
#else
#define OUTSIDE vec4(0)
#endif

T4 source_texel(int j) {
  ivec3 at = corner[LINE_AT(j)];
  int x = at.x + right, y = at.y + down;
  bool is_inside = uint(x) < uint(X) && uint(y) < uint(H);
  T4 v = LOAD(source, AT(clamp(x, 0, X - 1), at.z + clamp(y, 0, H - 1), channel, X, Z));
  return is_inside ? v : OUTSIDE;
}
T4 matrix_texel(int j) {
  // Found anew each time: kept, the rows of all lines would be further registers.
  int row = group * group_channels + min(first_channel + LINE(j), group_channels - 1);
  return LOAD_WEIGHT(weight, WEIGHT_AT(row, column, kernel_y * kernel_x * group_inputs));
}

void main() {
  int pixels = out_X * out_Y;
  int tiles = (pixels + TILE - 1) / TILE;
  int blocks = (group_channels + TILE - 1) / TILE;
  // A whole group.
  if (GROUP_NUMBER >= tiles * blocks * QUOTIENT(channels, group_channels)) return;
  bool is_constant = IS_CONSTANT(out_X);
  ivec2 group_place = divided(GROUP_NUMBER, tiles * blocks, is_constant);
  ivec2 place = divided(group_place.y, tiles, is_constant);
  group = group_place.x;
  int first = place.y * TILE;
  first_channel = place.x * TILE;

  [[unroll]] for (int j = 0; j < KEEPS; j++) {
    ivec2 row = DIVIDED(min(first + KEPT_LINE(j), pixels - 1), out_X);
    ivec2 image_row = image_of(row.x);
    corner[KEPT_AT(j)] = ivec3(row.y * stride_x - padding_x, image_row.y * stride_y - padding_y,
                               image_row.x * H);
  }
  if (!sum_up(kernel_y * kernel_x * group_inputs)) return;

  [[unroll]] for (int n = 0; n < TEXELS; n++) {
    int z = first_channel / 4 + TEXEL(n);
    if (4 * z >= group_channels) break;
    z += group * group_channels / 4;
    EPILOGUE epilogue = epilogue_at(z);
    [[unroll]] for (int m = 0; m < ROWS; m++) {
      int pixel = first + ROW(m);
      POSITION at = AT_ROW(pixel, z, out_X, (channels + 3) / 4);
      OUT4 v = mask_padding(ended(total(m, n), epilogue), VALID(z, channels));
      // Not a break: one inside the other, they take registers (28 on Intel).
      if (pixel < pixels) STORE(result, at, v);
    }
  }
}
