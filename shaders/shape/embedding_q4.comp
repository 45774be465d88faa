#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows of a table of 4-bit elements, each group of them with a scale. The table and its scales are
// linear buffers in every storage, without padding between the rows. An index counts from the end
// where it is negative, and is the first or the last row where it is outside. Of the table and of the
// scales there may be those rows alone that the indices name, in their order.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
FLAT_AS(1, table, u8)
FLAT(2, scales)
IN_AS(3, places, i32)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, rows)
// Of the indices: the size of their innermost dimension, and the grid.
PARAM(5, last)
PARAM(6, places_X)
PARAM(7, places_Y)
PARAM(8, places_Z)
PARAM(9, group)
CASE(10, high_first)
CASE(11, has_named_rows)
CASE(12, has_named_scales)
// Which of the rows the table and its scales have: the first one and how many. Another dispatch makes
// the rows that are named and that they do not have.
PARAM(13, first)
PARAM(14, count)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, Z), outer_lane = DIVIDED(row_texel.x, last);
  int t = outer_lane.x * places_Z + (outer_lane.y >> 2);
  int row = LOAD_AS(places, AT_LINEAR(t, places_X, places_Y, places_Z), i32)[outer_lane.y & 3];
  row = clamp(row < 0 ? row + rows : row, 0, rows - 1) - first;
  if (row < 0 || row >= count) return;
  int table_row = has_named_rows != 0 ? row_texel.x : row;
  int scales_row = has_named_scales != 0 ? row_texel.x : row;
  int groups = EXACT_QUOTIENT(size, group);
  vec4 v;
  [[unroll]] for (int k = 0; k < 4; k++) {
    int column = min(4 * row_texel.y + k, size - 1);
    int place = table_row * (size >> 1) + (column >> 1);
    uint pair = LOAD_FLAT_AS(table, place >> 2, u8)[place & 3];
    int element = int((column & 1) == high_first ? pair & 15u : pair >> 4) - 8;
    int number = scales_row * groups + EXACT_QUOTIENT(column, group);
    v[k] = float(element) * LOAD_FLAT(scales, number >> 2)[number & 3];
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(row_texel.y, size)));
}
