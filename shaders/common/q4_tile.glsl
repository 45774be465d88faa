// Rows times a matrix of 4-bit weights with a register tile: one invocation computes TILE_M rows
// times TILE_N texels of 4 columns of the result. The including shader defines both.
#include "q4_lines.glsl"
#include "neighbours.glsl"

void main() {
  int i = invocation();
  int tiles = (rows + TILE_M - 1) / TILE_M;
  int blocks = (columns + LINES - 1) / LINES;
  if (i >= tiles * blocks) return;
  ivec2 place = neighbours(i, tiles, blocks, IS_CONSTANT(rows));
  int first = place.x * TILE_M;
  int z = place.y * TILE_N;
  int result_Z = (columns + 3) / 4;
  find_lines(z);
  POSITION from[TILE_M];
  [[unroll]] for (int m = 0; m < TILE_M; m++)
    from[m] = AT_ROW(min(first + m, rows - 1), 0, source_X, source_Z);

  vec4 sum[TILE_M * TILE_N];
  [[unroll]] for (int k = 0; k < TILE_M * TILE_N; k++) sum[k] = vec4(0);
  for (int t = 0; t < texels; t++) {
    fetch(t, z);
    // Word by word, and not unrolled, for the sake of the time that compiling takes.
    for (int w = 0; w < 4; w++) {
      vec4 v[2 * TILE_M];
      [[unroll]] for (int k = 0; k < 2 * TILE_M; k++)
        v[k] = IN_ORDER(LOAD(source, NEXT(from[k >> 1], 8 * t + 2 * w + (k & 1))));
      [[unroll]] for (int n = 0; n < LINES; n++) {
        float factor = scale[n >> 2][n & 3];
        int word = words[n][w];
        vec4 four = four_of(word) * (factor * UNIT) - 8.0 * factor;
        vec4 last_four = last_four_of(word) * (factor * LAST_UNIT) - 8.0 * factor;
        [[unroll]] for (int m = 0; m < TILE_M; m++)
          sum[m * TILE_N + (n >> 2)][n & 3] += dot(v[2 * m], four) + dot(v[2 * m + 1], last_four);
      }
    }
  }

  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_Z) break;
    [[unroll]] for (int m = 0; m < TILE_M; m++) {
      if (first + m >= rows) break;
      POSITION at = AT_ROW(first + m, z + n, result_X, result_Z);
      STORE(result, at, ended(sum[m * TILE_N + n], z + n, at));
    }
  }
}
