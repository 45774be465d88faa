#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Overlapping tiles of 6x6 pixels at the points of winograd.glsl: for each pair of points (y, x) a
// matrix of tiles by channels. One invocation makes 4 channels of a tile.
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

void main() {
  int i = invocation();
  int tiles = rows * tiles_x;
  if (i >= tiles * Z) return;
  ivec2 tile_texel = divided(i, Z), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  int tile = tile_texel.x, z = tile_texel.y;
  int left = row_tile.y * TILE - padding_x;
  int top = image_row.y * TILE - padding_y;
  int image = image_row.x * H;
  vec4 half_way[POINTS][POINTS];
  [[unroll]] for (int x = 0; x < POINTS; x++) {
    vec4 v[POINTS];
    [[unroll]] for (int y = 0; y < POINTS; y++) {
      ivec2 at = clamp(ivec2(left + x, top + y), ivec2(0), ivec2(X - 1, H - 1));
      v[y] = LOAD(source, AT(at.x, image + at.y, z, X, Z));
      if (at != ivec2(left + x, top + y)) v[y] = vec4(0);
    }
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
