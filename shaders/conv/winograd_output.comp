#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The products at the points of winograd.glsl as tiles of 4x4 pixels of a convolution's result. One
// invocation makes 4 channels of a tile, which takes 96 registers and more; or two of its four rows,
// which takes 48 and loads most products twice; or one, which takes 24 and loads most four times.
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
// Texels of a pixel that the products are for, and the first of them
PUSHED(7, first_texel)
PUSHED(8, texels)
// Invocations that make a tile: 1, 2 or 4
CASE(9, parts)
#define VECTORS 2
#define ENDS 10
#include "epilogue.glsl"

int tiles, tile, z, left, top, image;

vec4 product(int x, int y) { return LOAD(products, AT(tile, POINTS * y + x, z, tiles, texels)); }

// Row y of a tile, as far as the columns go to `end`.
void put_row(int y, vec4 v[TILE], vec4 offset, int end) {
  [[unroll]] for (int x = 0; x < TILE; x++) {
    vec4 value = v[x] + offset;
    value = activated(value);
    // Not a break: V3D's compiler does not unroll a loop with one, and then the array lies in memory.
    if (left + x < end)
      STORE(result, AT(left + x, image + top + y, first_texel + z, X, (channels + 3) / 4),
            mask_padding(value, VALID(first_texel + z, channels)));
  }
}

void main() {
  int i = invocation();
  tiles = rows * tiles_x;
  int part = 0;
  // As in winograd_input.comp.
  if (parts == TILE) i = min(i, parts * tiles * texels - 1);
  if (parts > 1) {
    ivec2 part_rest = divided(i, tiles * texels);
    part = part_rest.x;
    i = part_rest.y;
    if (parts != TILE && part >= parts) return;
  } else if (i >= tiles * texels) return;
  ivec2 tile_texel = divided(i, texels), row_tile = divided(tile_texel.x, tiles_x);
  ivec2 image_row = divided(first_row + row_tile.x, tiles_y);
  tile = tile_texel.x;
  z = tile_texel.y;
  left = row_tile.y * TILE;
  top = image_row.y * TILE;
  image = image_row.x * H;
  if (parts == TILE) {
    // What points_to_pixels makes of a column for row `part`: sums of pairs, or differences. Of each
    // column's the pixels of the row have powers of its point as factors, the last has infinity's. Not
    // unrolled: compilers would load all products at once.
    vec4 v[TILE] = vec4[](vec4(0), vec4(0), vec4(0), vec4(0));
    bool is_even = part % 2 == 0, is_outer = part == 0 || part == TILE - 1;
    float a = (is_even ? 1.0 : A) * (part < 2 ? 1.0 : AA), b = (is_even ? 1.0 : B) * (part < 2 ? 1.0 : BB);
    vec4 factors = vec4(a, is_even ? a : -a, b, is_even ? b : -b);
    for (int x = 0; x < POINTS; x++) {
      vec4 m = vec4(0);
      if (is_outer) m = product(x, part == 0 ? 0 : POINTS - 1);
      POSITION at = AT(tile, x, z, tiles, texels);
      [[unroll]] for (int k = 0; k < 4; k++)
        m += factors[k] * LOAD(products, DOWN(at, (k + 1) * POINTS, tiles, texels));
      float point = x == 0 ? 0.0 : (x < 3 ? A : B) * (x % 2 == 1 ? 1.0 : -1.0);
      if (x == POINTS - 1) {
        v[3] += m;
        break;
      }
      v[0] += m;
      v[1] += point * m;
      v[2] += point * point * m;
      v[3] += point * point * point * m;
    }
    put_row(part, v, epilogue_at(first_texel + z), top + part < H ? X : 0);
    return;
  }
  if (parts == 2) {
    // What it makes of columns for two rows, of which either both have sums of pairs or differences
    vec4 two[2][POINTS];
    float sign = part == 0 ? 1.0 : -1.0, a = part == 0 ? 1.0 : A, b = part == 0 ? 1.0 : B;
    [[unroll]] for (int x = 0; x < POINTS; x++) {
      vec4 outer = product(x, 5 * part);
      vec4 first = a * (product(x, 1) + sign * product(x, 2));
      vec4 second = b * (product(x, 3) + sign * product(x, 4));
      two[0][x] = first + second;
      two[1][x] = AA * first + BB * second;
      if (part == 0) two[0][x] += outer;
      else two[1][x] += outer;
    }
    vec4 offset = epilogue_at(first_texel + z);
    [[unroll]] for (int k = 0; k < 2; k++) {
      if (top + part + 2 * k >= H) break;
      vec4 v[TILE];
      points_to_pixels(two[k], v);
      put_row(part + 2 * k, v, offset, X);
    }
    return;
  }
  vec4 half_way[POINTS][TILE];
  [[unroll]] for (int x = 0; x < POINTS; x++) {
    vec4 m[POINTS];
    [[unroll]] for (int y = 0; y < POINTS; y++)
      m[y] = product(x, y);
    points_to_pixels(m, half_way[x]);
  }
  vec4 offset = epilogue_at(first_texel + z);
  [[unroll]] for (int y = 0; y < TILE; y++) {
    if (top + y >= H) break;
    vec4 m[POINTS], v[TILE];
    [[unroll]] for (int x = 0; x < POINTS; x++) m[x] = half_way[x][y];
    points_to_pixels(m, v);
    put_row(y, v, offset, X);
  }
}
