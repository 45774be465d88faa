#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none float16:f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights (q4.glsl), 32 rows times 32 columns of the result a workgroup.
// A weight is unpacked once a group, by the invocation that brings it.
#define TILE 32
#define WEIGHT_DTYPE i32
#include "q4.glsl"
#include "q4_lines.glsl"
#include "shared_tile.glsl"

// Texels of the summed dimension in one of the weight's.
#define EACH 8

POSITION from[LINES];
int column[LINES], line[LINES];
int at_k, scales_of_group;

void look_at(int k) {
  at_k = k;
  scales_of_group = scales_at(k / EACH);
}
T4 source_texel(int j) { return LOAD(source, NEXT(from[j], at_k)); }
T4 matrix_texel(int j) {
  ivec4 words = LOAD_FLAT_AS(weight, line[j] + at_k / EACH, i32);
  float scale = LOAD_FLAT(scales, scales_of_group + column[j] / 4)[column[j] & 3];
  int word = words[at_k / 2 & 3];
  vec4 v = (at_k & 1) == 0 ? four_of(word) * UNIT : last_four_of(word) * LAST_UNIT;
  return scale * (IN_ORDER(v) - 8.0);
}

void main() {
  int tiles = (rows + TILE - 1) / TILE;
  int blocks = (columns + TILE - 1) / TILE;
  // A whole group.
  if (GROUP_NUMBER >= tiles * blocks) return;
  ivec2 place = divided(GROUP_NUMBER, tiles, IS_CONSTANT(rows));
  int first = place.y * TILE, first_column = place.x * TILE;

  [[unroll]] for (int j = 0; j < LINES; j++) {
    from[j] = AT_ROW(min(first + LINE(j), rows - 1), 0, source_X, source_Z);
    column[j] = min(first_column + LINE(j), columns - 1);
    line[j] = line_at(column[j]);
  }
  if (!sum_up(EACH * texels)) return;

  int result_Z = (columns + 3) / 4;
  [[unroll]] for (int n = 0; n < TEXELS; n++) {
    int z = first_column / 4 + TEXEL(n);
    if (z >= result_Z) break;
    [[unroll]] for (int m = 0; m < ROWS; m++) {
      int row = first + ROW(m);
      // Not a break: see conv2d_shared.glsl.
      POSITION at = AT_ROW(min(row, rows - 1), z, result_X, result_Z);
      vec4 v = ended(total(m, n), z, at);
      if (row < rows) STORE(result, at, v);
    }
  }
}
