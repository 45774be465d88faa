// Rows times a matrix of 4-bit weights with a register tile: one invocation computes TILE_M rows
// times TILE_N texels of 4 columns of the result. The including shader defines both.
//
// Who loads a weight unpacks it, and in variants for the feature shuffle 8 lanes do that for each
// other.
#define WEIGHT_DTYPE i32
#include "q4.glsl"
#include "q4_lines.glsl"
#include "neighbours.glsl"
#include "shuffle.glsl"

#if TILE_M == 2
// Whether words are loaded one by one: whole texels of 4 lines are half of 32 registers.
CASE(14, by_words)
#else
#define by_words 0
#endif

void main() {
  int i = numbered();
  // Of LANES invocations each.
  int tiles = (rows + LANES * TILE_M - 1) / (LANES * TILE_M);
  int blocks = (columns + 4 * TILE_N - 1) / (4 * TILE_N);
  if (i >= LANES * tiles * blocks) return;
  ivec2 place = neighbours(i / LANES, tiles, blocks, IS_CONSTANT(rows));
  int first = (place.x * LANES + i % LANES) * TILE_M;
  int z = place.y * TILE_N;
  int result_Z = (columns + 3) / 4;
  // Where lines of the tile's columns begin.
#define LINE_OF(j) line_at(4 * z + LINE(j))
#if TILE_N == 1
  // Both are found anew each time: kept, they are registers too many (Mali's compiler spills 2 to 5).
#define LINE_AT(j) LINE_OF(j)
#else
  int line[LINES(4 * TILE_N)];
  [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) line[j] = LINE_OF(j);
#define LINE_AT(j) line[j]
#endif
#define FROM_OF(m) AT_ROW(min(first + (m), rows - 1), 0, source_X, source_Z)
#if TILE_N == 1
#define FROM_AT(m) FROM_OF(m)
#else
  POSITION from[TILE_M];
  [[unroll]] for (int m = 0; m < TILE_M; m++) from[m] = FROM_OF(m);
#define FROM_AT(m) from[m]
#endif

  vec4 sum[TILE_M * TILE_N];
  [[unroll]] for (int k = 0; k < TILE_M * TILE_N; k++) sum[k] = vec4(0);
  for (int t = 0; t < texels; t++) {
    // All are fetched before any is used: memory then answers them together (measured: 1.4 times
    // faster).
    ivec4 words[LINES(4 * TILE_N)];
    float factor[LINES(4 * TILE_N)];
    if (by_words == 0) {
      [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++)
        words[j] = LOAD_FLAT_AS(weight, LINE_AT(j) + t, i32);
    }
    int group = scales_at(t);
    vec4 scale;
    [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) {
      // Of lines that are neighbours it is one texel.
      if (LANES > 1 || j % 4 == 0)
        scale = LOAD_FLAT(scales, group + min(z + LINE(j) / 4, result_Z - 1));
      factor[j] = scale[LINE(j) % 4];
    }
    // Word by word, and not unrolled, for the sake of the time that compiling takes.
    for (int w = 0; w < 4; w++) {
      vec4 v[2 * TILE_M];
      [[unroll]] for (int k = 0; k < 2 * TILE_M; k++)
        v[k] = IN_ORDER(LOAD(source, NEXT(FROM_AT(k >> 1), 8 * t + 2 * w + (k & 1))));
#if TILE_N == 1
      // The first word of each line, which then goes behind the others: to choose one by number
      // takes registers, too.
#define WORD(j) (by_words != 0 ? LOAD_FLAT_AS(weight, LINE_AT(j) + t, i32)[w] : words[j].x)
#else
#define WORD(j) words[j][w]
#endif
#define FOUR(j) four_of(WORD(j)) * (factor[j] * UNIT) - 8.0 * factor[j]
#define LAST_FOUR(j) last_four_of(WORD(j)) * (factor[j] * LAST_UNIT) - 8.0 * factor[j]
      TEXELS_OF(fours, 4 * TILE_N, FOUR)
      TEXELS_OF(last_fours, 4 * TILE_N, LAST_FOUR)
      [[unroll]] for (int n = 0; n < 4 * TILE_N; n++) {
        vec4 four = TEXEL_OF(fours, n, FOUR), last_four = TEXEL_OF(last_fours, n, LAST_FOUR);
        [[unroll]] for (int m = 0; m < TILE_M; m++)
          sum[m * TILE_N + (n >> 2)][n & 3] += dot(v[2 * m], four) + dot(v[2 * m + 1], last_four);
      }
#if TILE_N == 1
      if (by_words == 0) {
        [[unroll]] for (int j = 0; j < LINES(4); j++) words[j] = words[j].yzwx;
      }
#endif
    }
  }

  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_Z) break;
    [[unroll]] for (int m = 0; m < TILE_M; m++) {
      // Not a break: V3D's compiler does not unroll a loop with one, and then the sums lie in memory.
      if (first + m < rows) {
        POSITION at = AT_ROW(first + m, z + n, result_X, result_Z);
        STORE(result, at, ended(sum[m * TILE_N + n], z + n, at));
      }
    }
  }
}
