#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The products at the points of winograd.glsl as tiles of 4x4 pixels of a convolution's result. One
// invocation makes 4 channels of a tile, which takes 96 registers and more; or one of its four rows,
// which takes 24 and loads most products four times.
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
// Whether an invocation makes a row
CASE(7, by_rows)
#define VECTORS 2
#define ENDS 8
#include "ending.glsl"

int tiles, Z, tile, z, left, top, image;

vec4 product(int x, int y) { return LOAD(products, AT(tile, POINTS * y + x, z, tiles, Z)); }

void put_row(int y, vec4 m[POINTS], vec4 offset) {
  vec4 v[TILE];
  points_to_pixels(m, v);
  [[unroll]] for (int x = 0; x < TILE; x++) {
    if (left + x >= X) break;
    vec4 value = v[x] + offset;
    value = activated(value);
    STORE(result, AT(left + x, image + top + y, z, X, Z), mask_padding(value, VALID(z, channels)));
  }
}

void main() {
  int i = invocation();
  tiles = rows * tiles_x;
  Z = (channels + 3) / 4;
  int row = 0;
  if (by_rows != 0) {
    ivec2 row_rest = divided(i, tiles * Z);
    row = row_rest.x;
    i = row_rest.y;
    if (row >= TILE) return;
  } else if (i >= tiles * Z) return;
  ivec2 tile_texel = divided(i, Z), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  tile = tile_texel.x;
  z = tile_texel.y;
  left = row_tile.y * TILE;
  top = image_row.y * TILE;
  image = image_row.x * H;
  if (by_rows != 0) {
    if (top + row >= H) return;
    // What points_to_pixels makes of a column for this row: sums of pairs, or differences
    vec4 m[POINTS];
    bool is_even = row % 2 == 0;
    float sign = is_even ? 1.0 : -1.0;
    float a = (is_even ? 1.0 : A) * (row < 2 ? 1.0 : AA), b = (is_even ? 1.0 : B) * (row < 2 ? 1.0 : BB);
    [[unroll]] for (int x = 0; x < POINTS; x++) {
      m[x] = a * (product(x, 1) + sign * product(x, 2)) + b * (product(x, 3) + sign * product(x, 4));
      if (row % 3 == 0) m[x] += product(x, row == 0 ? 0 : 5);
    }
    put_row(row, m, ending_at(z));
    return;
  }
  vec4 half_way[POINTS][TILE];
  [[unroll]] for (int x = 0; x < POINTS; x++) {
    vec4 m[POINTS];
    [[unroll]] for (int y = 0; y < POINTS; y++)
      m[y] = product(x, y);
    points_to_pixels(m, half_way[x]);
  }
  vec4 offset = ending_at(z);
  [[unroll]] for (int y = 0; y < TILE; y++) {
    if (top + y >= H) break;
    vec4 m[POINTS];
    [[unroll]] for (int x = 0; x < POINTS; x++) m[x] = half_way[x][y];
    put_row(y, m, offset);
  }
}
