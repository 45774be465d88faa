// Rows of a tensor that integers name: row n of the result is row places[n] of the source.
//
// A row is `slab` texels, one after the other in both, of which an invocation copies `run`, a part
// of a row. The integers are counted in their logical
// order (the innermost dimension of `last` elements is padded to whole texels). A negative one
// counts from the end, one beyond the ends is the first or last row: nothing is read outside.
//
// The including shader declares `source` and defines SOURCE_TEXEL(t).

#include "params.glsl"

OUT(0, result)
IN_AS(2, places, i32)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, slab)
PARAM(4, rows)
PARAM(5, last)
PARAM(6, places_X)
PARAM(7, places_Y)
PARAM(8, places_Z)
PARAM(9, source_X)
PARAM(10, source_Y)
PARAM(11, source_Z)
PARAM(12, run)
// Which of the rows the source has: the first one and how many. Another dispatch makes the rows that
// are named and that it does not have.
PARAM(13, first)
PARAM(14, count)

void main() {
  int i = run * invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, slab), outer_lane = DIVIDED(row_texel.x, last);
  int lane = outer_lane.y;
  int t = outer_lane.x * places_Z + (lane >> 2);
  int row = LOAD_AS(places, AT_LINEAR(t, places_X, places_Y, places_Z), i32)[lane & 3];
  row = clamp(row < 0 ? row + rows : row, 0, rows - 1) - first;
  if (row < 0 || row >= count) return;
  int from = row * slab + row_texel.y;
  for (int k = 0; k < run; k++)
    STORE(result, AT_LINEAR(i + k, X, Y, Z), SOURCE_TEXEL(from + k));
}
