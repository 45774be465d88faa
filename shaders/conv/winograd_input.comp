#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Overlapping tiles of 6x6 pixels at the points of winograd.glsl: for each pair of points (y, x) a
// matrix of tiles by channels. One invocation makes 4 channels of a tile, which takes 144 registers and
// more; or three of the six rows of these, which takes 72 and loads most pixels twice; or one, which
// takes 24 and loads most four times.
#include "tensor.glsl"
#include "params.glsl"
#include "winograd.glsl"

OUT(0, result)
IN(1, source)
PUSHED(0, X)
PUSHED(1, H)
PUSHED(2, Z)
// Tiles of a row, rows of tiles of an image; the part of the rows of tiles (of all images) to do.
PUSHED(3, tiles_x)
PUSHED(4, tiles_y)
PUSHED(5, first_row)
PUSHED(6, rows)
PUSHED(7, padding_x)
PUSHED(8, padding_y)
// Invocations that make a tile: 1, 2 or 6
CASE(9, parts)

int left, top, image, z;

vec4 pixel(int x, int y) {
  ivec2 at = clamp(ivec2(left + x, top + y), ivec2(0), ivec2(X - 1, H - 1));
  vec4 v = LOAD(source, AT(at.x, image + at.y, z, X, Z));
  if (at != ivec2(left + x, top + y)) v = vec4(0);
  return v;
}

void main() {
  int i = invocation();
  int tiles = rows * tiles_x;
  int part = 0;
  if (parts == POINTS) i = min(i, parts * tiles * Z - 1);
  if (parts > 1) {
    ivec2 part_rest = divided(i, tiles * Z);
    part = part_rest.x;
    i = part_rest.y;
    if (parts != POINTS && part >= parts) return;
  } else if (i >= tiles * Z) return;
  ivec2 tile_texel = divided(i, Z), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  int tile = tile_texel.x;
  z = tile_texel.y;
  left = row_tile.y * TILE - padding_x;
  top = image_row.y * TILE - padding_y;
  image = image_row.x * H;
  if (parts == POINTS) {
    // What pixels_to_points makes of a column for row `part`: pixels of four rows, or of three, times
    // factors, one way for all parts. Rows outside have the factor zero, and their pixels are of a row
    // that is inside.
    bool is_last = part == POINTS - 1, is_outer = part == 0 || is_last;
    int shift = is_last ? 1 : 0;
    float even = is_outer ? AA + BB : part < 3 ? BB : AA, odd = part < 3 ? A : B;
    if (part % 2 == 0) odd = -odd;
    ivec4 y = top + ivec4(4 + shift, 2 + shift, is_outer ? shift : 3, 1);
    vec4 factors = vec4(1.0, -even, is_outer ? AA * BB : odd, is_outer ? 0.0 : -odd * even);
    ivec4 near = clamp(y, 0, H - 1);
    factors = mix(factors, vec4(0), notEqual(near, y));
    POSITION from[4];
    [[unroll]] for (int k = 0; k < 4; k++) from[k] = AT(0, image + near[k], z, X, Z);
    bool is_met = top < H && top + POINTS > 0;
    // Not unrolled: compilers would load all pixels at once. No invocation has returned, as those beyond the last do
    // what it does: V3D masks each instruction of a loop for which not all are there.
    vec4 v[POINTS];
    for (int x = 0; x < POINTS; x++) {
      [[unroll]] for (int k = 1; k < POINTS; k++) v[k - 1] = v[k];
      int column = clamp(left + x, 0, X - 1);
      vec4 sum = vec4(0);
      [[unroll]] for (int k = 0; k < 4; k++)
        sum += factors[k] * LOAD(source, RIGHT(from[k], column, Z));
      v[5] = is_met && column == left + x ? sum : vec4(0);
    }
    pixels_to_points(v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(tile, POINTS * part + x, z, tiles, Z), v[x]);
    return;
  }
  if (parts == 2) {
    // What it makes of columns for the rows of one number, its opposite, and zero or infinity
    vec4 three[3][POINTS];
    float other = part == 0 ? BB : AA, own = part == 0 ? A : B;
    [[unroll]] for (int x = 0; x < POINTS; x++) {
      vec4 outer = pixel(x, 5 * part), v[5];
      [[unroll]] for (int y = 1; y < 5; y++) v[y] = pixel(x, y);
      vec4 even = v[4] - other * v[2], odd = own * (v[3] - other * v[1]);
      three[0][x] = even + odd;
      three[1][x] = even - odd;
      three[2][x] = part == 0 ? v[4] - (AA + BB) * v[2] + AA * BB * outer
                              : outer - (AA + BB) * v[3] + AA * BB * v[1];
    }
    [[unroll]] for (int k = 0; k < 3; k++) {
      pixels_to_points(three[k]);
      int row = k == 2 ? 5 * part : 2 * part + 1 + k;
      [[unroll]] for (int x = 0; x < POINTS; x++)
        STORE(result, AT(tile, POINTS * row + x, z, tiles, Z), three[k][x]);
    }
    return;
  }
  vec4 half_way[POINTS][POINTS];
  [[unroll]] for (int x = 0; x < POINTS; x++) {
    vec4 v[POINTS];
    [[unroll]] for (int y = 0; y < POINTS; y++) v[y] = pixel(x, y);
    pixels_to_points(v);
    half_way[x] = v;
  }
  [[unroll]] for (int y = 0; y < POINTS; y++) {
    vec4 v[POINTS];
    [[unroll]] for (int x = 0; x < POINTS; x++) v[x] = half_way[x][y];
    pixels_to_points(v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(tile, POINTS * y + x, z, tiles, Z), v[x]);
  }
}
