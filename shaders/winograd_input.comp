#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Overlapping tiles of 6x6 pixels at the points of winograd.glsl: for each pair of points (y, x) a
// matrix of tiles by channels. One invocation makes 4 channels of a tile, which takes 144 registers and
// more; or one of the six rows of these, which takes 24 and loads most pixels four times.
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
// Whether an invocation makes a row
CASE(9, by_rows)

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
  int row = 0;
  if (by_rows != 0) {
    ivec2 row_rest = divided(i, tiles * Z);
    row = row_rest.x;
    i = row_rest.y;
    if (row >= POINTS) return;
  } else if (i >= tiles * Z) return;
  ivec2 tile_texel = divided(i, Z), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  int tile = tile_texel.x;
  z = tile_texel.y;
  left = row_tile.y * TILE - padding_x;
  top = image_row.y * TILE - padding_y;
  image = image_row.x * H;
  if (by_rows != 0) {
    // What pixels_to_points makes of a column for this row
    vec4 v[POINTS];
    float other = row < 3 ? BB : AA, own = row < 3 ? A : B;
    if (row % 2 == 0) own = -own;
    [[unroll]] for (int x = 0; x < POINTS; x++) {
      if (row % 5 == 0) {
        int y = row / 5;
        v[x] = pixel(x, 4 + y) - (AA + BB) * pixel(x, 2 + y) + AA * BB * pixel(x, y);
      } else {
        v[x] = pixel(x, 4) - other * pixel(x, 2) + own * (pixel(x, 3) - other * pixel(x, 1));
      }
    }
    pixels_to_points(v);
    [[unroll]] for (int x = 0; x < POINTS; x++)
      STORE(result, AT(tile, POINTS * row + x, z, tiles, Z), v[x]);
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
