#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The products at the points of winograd.glsl as tiles of 4x4 pixels of a convolution's result. One
// invocation makes 4 channels of a tile.
#include "tensor.glsl"
#include "params.glsl"
#include "winograd.glsl"

OUT(0, result)
IN(1, products)
PUSHED(0, X)
PUSHED(1, H)
PUSHED(2, channels)
// See winograd_input.comp.
PUSHED(3, tiles_x)
PUSHED(4, tiles_y)
PUSHED(5, first_row)
PUSHED(6, rows)
#define VECTORS 2
#define ENDS 7
#include "ending.glsl"

void main() {
  int i = invocation();
  int tiles = rows * tiles_x;
  int Z = (channels + 3) / 4;
  if (i >= tiles * Z) return;
  ivec2 tile_texel = divided(i, Z), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  int tile = tile_texel.x, z = tile_texel.y;
  int left = row_tile.y * TILE;
  int top = image_row.y * TILE;
  int image = image_row.x * H;
  vec4 half_way[POINTS][TILE];
  [[unroll]] for (int x = 0; x < POINTS; x++) {
    vec4 m[POINTS];
    [[unroll]] for (int y = 0; y < POINTS; y++)
      m[y] = LOAD(products, AT(tile, POINTS * y + x, z, tiles, Z));
    points_to_pixels(m, half_way[x]);
  }
  vec4 offset = ending_at(z);
  [[unroll]] for (int y = 0; y < TILE; y++) {
    if (top + y >= H) break;
    vec4 m[POINTS], v[TILE];
    [[unroll]] for (int x = 0; x < POINTS; x++) m[x] = half_way[x][y];
    points_to_pixels(m, v);
    [[unroll]] for (int x = 0; x < TILE; x++) {
      if (left + x >= X) break;
      vec4 value = v[x] + offset;
      value = activated(value);
      STORE(result, AT(left + x, image + top + y, z, X, Z),
            mask_padding(value, VALID(z, channels)));
    }
  }
}
