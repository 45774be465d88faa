#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 f32:i8 f16:i8
#extension GL_GOOGLE_include_directive : require
// Rows of a cache [item, row, ..] replaced by those of a tensor, each at a place of its own: of rows of
// an item that have one place the last counts, and one that is not in the cache is left out. A cache of
// 8 bits has an invocation for each head (cache.glsl).
#include "tensor.glsl"
#include "params.glsl"
#include "cache.glsl"

SSBO_OUT(0, cache, DTYPE_OUT)
IN(1, source)
// [item, row]
FLAT_AS(2, places, i32)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Texels of a row of the cache; its rows, and those of the tensor, of an item.
PARAM(3, slab)
PARAM(4, rows)
PARAM(5, count)

int place(int item, int row) {
  return LOAD_FLAT_AS(places, item * (count + 3 >> 2) + (row >> 2), i32)[row & 3];
}

// Where texel i of the tensor goes, -1 for nowhere.
int place_of(int i) {
  ivec2 row_texel = DIVIDED(i, slab);
  ivec2 item_row = DIVIDED(row_texel.x, count);
  int found = place(item_row.x, item_row.y);
  if (found < 0 || found >= rows) return -1;
  for (int later = item_row.y + 1; later < count; later++)
    if (place(item_row.x, later) == found) return -1;
  return (item_row.x * rows + found) * slab + row_texel.y;
}

void main() {
  int i = invocation();
#ifdef CACHE_IN_8_BITS
  if (i >= X * Y) return;
  int first = place_of(i * HEAD_TEXELS);
  if (first < 0) return;
#define TEXEL(z) LOAD(source, AT_LINEAR(i * Z + z, X, Y, Z))
  WRITE_HEAD(cache, first, TEXEL)
#else
  if (i >= X * Y * Z) return;
  int first = place_of(i);
  if (first < 0) return;
  cache[first] = PASTE(pack_, DTYPE)(LOAD(source, AT_LINEAR(i, X, Y, Z)));
#endif
}
