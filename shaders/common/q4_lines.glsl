// The kernels for weights whose groups are whole texels of 32 elements. An invocation computes
// TILE_N texels of 4 columns; the including shader defines that.
#define WEIGHT_DTYPE i32
#include "q4.glsl"

// Texels of a line of the weight, and of a group.
PARAM(8, texels)
PARAM(9, group_texels)

#define LINES (4 * TILE_N)

// Where the lines of the tile's columns begin.
int line[LINES];
void find_lines(int z) {
  [[unroll]] for (int n = 0; n < LINES; n++) line[n] = min(4 * z + n, columns - 1) * texels;
}

// Texel t of every line. All are fetched before any is used: memory then answers them together
// (measured: 1.4 times faster).
ivec4 words[LINES];
vec4 scale[TILE_N];
void fetch(int t, int z) {
  [[unroll]] for (int n = 0; n < LINES; n++) words[n] = LOAD_FLAT_AS(weight, line[n] + t, i32);
  int result_Z = (columns + 3) / 4;
  int group = QUOTIENT(t, group_texels) * result_Z;
  [[unroll]] for (int n = 0; n < TILE_N; n++)
    scale[n] = LOAD_FLAT(scales, group + min(z + n, result_Z - 1));
}
