// One row times up to MOST weights of 4 bits (see weights_q4.glsl) that have the same sizes. MOST is 1: a
// layer, plus a bias, plus a tensor. Or it is 3: two or three layers that read one row (keys and
// values), a result each; or, gated, one result of two of them: silu(the first) * the second. What
// is bound for a layer that is not there is another one's.
//
// The row may be divided by the root of its mean square before, times a weight (rms_norm.comp). Each
// invocation then sums the squares of what it reads anyway, and divides its results.
//
// An invocation, or a team (team.glsl) where TEAMS is defined, makes TILE_N texels of 4 columns of
// each of them. Of one layer it makes one texel instead, where there are few registers (`by_words`).

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

PARAM(0, columns)
// Texels of the row, and the widths of the grids.
PARAM(1, source_Z)
PARAM(2, source_X)
PARAM(3, result_X)
// Texels of a line of a weight, and of a group.
PARAM(4, texels)
PARAM(5, group_texels)
PARAM(6, has_bias)
// Whether an even element is in the high half of its byte, and not in the low one.
CASE(7, high_first)
// Whether invocations walk over lines ahead, see q4_layer.glsl.
CASE(8, reads_ahead)
// 0, which compilers do not know.
PUSHED(9, nothing)
CASE(10, has_norm)
PARAM_FLOAT(11, epsilon)
// Of one layer: whether `residual` is added to the result.
PARAM(12, has_residual)
// Of the scales: the first texel that is read of those of a group, and the texels from one group to the
// next.
PARAM(13, first_scale)
PARAM(14, scale_texels)
#if MOST == 1
#define layers 1
#define TEAM 15
#else
CASE(15, layers)
CASE(16, is_gated)
#define TEAM 17
#endif
#if defined(TEAMS)
#include "team.glsl"
#else
#define SHARED(k, begin, end) for (int k = (begin); k < (end); k++)
#endif
#include "shuffle.glsl"
#if MOST == 1 && LANES == 1 && !defined(TEAMS)
// Whether an invocation has one texel of columns, and goes through their lines word by word: so it
// holds 8 elements of the row at a time and not 32, which are 38 registers of 103.
CASE(15, by_words)
#else
#define by_words 0
#endif

#if MOST == 1
#define EACH(DO) DO(first, 0)
#else
#define EACH(DO) DO(first, 0) DO(second, 1) DO(third, 2)
#include "math.glsl"
#endif
// Where there is one layer, over what is added to it.
#define RESULT_OF(layer, number) ALIASED OUT(number, layer##_result)
EACH(RESULT_OF)
IN(MOST, source)
#if MOST == 1
FLAT_AS(2, first_weight, i32)
FLAT(3, first_scales)
TEXEL_IN(4, first_bias, DTYPE)
// Lies as the result does, and is added to it.
ALIASED IN_TEXELS(5, residual)

vec4 with_residual(vec4 v, POSITION at) {
  // Where there is none, a texel of anything is bound.
  vec4 other = LOAD_TEXELS(residual, has_residual != 0 ? at : POSITION(0));
  return has_residual != 0 ? v + other : v;
}
TEXEL_IN(6, norm, DTYPE)
#define LOAD_WORDS(name, i) LOAD_FLAT_AS(name, i, i32)
#define LOAD_SCALES(name, i) LOAD_FLAT(name, i)
#else
// Texels in every storage: a stage may have no more than 4 storage buffers.
#define AS_TEXELS(layer, number) \
  TEXEL_IN(MOST + 1 + number, layer##_weight, i32) \
  TEXEL_IN(MOST + 1 + MOST + number, layer##_scales, DTYPE) \
  TEXEL_IN(MOST + 1 + 2 * MOST + number, layer##_bias, DTYPE)
#define LOAD_WORDS(name, i) texelFetch(name, i)
#define LOAD_SCALES(name, i) texelFetch(name, i)
EACH(AS_TEXELS)
TEXEL_IN(MOST + 1 + 3 * MOST, norm, DTYPE)
#endif

#include "q4_words.glsl"

int result_Z() { return (columns + 3) / 4; }
// Where the scales begin of the group that has texel t of a line.
#define GROUP_SCALES(t) (first_scale + QUOTIENT(t, group_texels) * scale_texels)

// Where the lines of the tile's columns begin, and their scales among those that are read of a group.
int line[4 * TILE_N], scales_of[TILE_N];
void find_lines(int z) {
  [[unroll]] for (int n = 0; n < 4 * TILE_N; n++) line[n] = min(4 * z + n, columns - 1) * texels;
  [[unroll]] for (int n = 0; n < TILE_N; n++) scales_of[n] = min(z + n, result_Z() - 1);
}

// What meets texel t of a line, and 8 times the sum of that: products are with the elements plus 8,
// and what that is too much is taken away once for all columns.
vec4 row[8];
float excess;
vec4 squares = vec4(0);

// Counts a texel of the row in the sums `total` and, of squares, `those`; then it is what weights
// meet.
#define COUNT(v, factor) \
  if (has_norm != 0) { \
    those += v * v; \
    v *= factor; \
  } \
  total += v;

void read_row(int t) {
  POSITION from = AT_ROW(0, 0, source_X, source_Z);
  vec4 total = vec4(0), those = vec4(0);
#define ROW(j) LOAD(source, NEXT(from, 8 * t + LINE(j)))
#define FACTOR(j) (has_norm != 0 ? texelFetch(norm, 8 * t + LINE(j)) : vec4(1))
  TEXELS_OF(texel, 8, ROW)
  TEXELS_OF(factor, 8, FACTOR)
  [[unroll]] for (int k = 0; k < 8; k++) {
    vec4 v = TEXEL_OF(texel, k, ROW);
    COUNT(v, TEXEL_OF(factor, k, FACTOR))
    row[k] = IN_ORDER(v) * ((k & 1) == 0 ? UNIT : LAST_UNIT);
  }
  squares += those;
  excess = 8.0 * dot(total, vec4(1));
}

#if MOST == 1 && LANES == 1 && !defined(TEAMS)
// The products of texel t of the lines of 4 columns, as first_add has them. Their words are loaded one
// by one: whole texels of 4 lines are 16 registers.
vec4 products_by_words(int t) {
  POSITION from = AT_ROW(0, 0, source_X, source_Z);
  vec4 products = vec4(0), total = vec4(0), those = vec4(0);
  // Not unrolled: compilers would load all of the row at once.
  for (int k = 0; k < 4; k++) {
    int place = 8 * t + 2 * k;
    vec4 u = LOAD(source, NEXT(from, place)), v = LOAD(source, NEXT(from, place + 1));
    COUNT(u, texelFetch(norm, place))
    COUNT(v, texelFetch(norm, place + 1))
    u = IN_ORDER(u) * UNIT;
    v = IN_ORDER(v) * LAST_UNIT;
    [[unroll]] for (int c = 0; c < 4; c++) {
      int word = LOAD_WORDS(first_weight, line[c] + t)[k];
      products[c] += dot(u, four_of(word)) + dot(v, last_four_of(word));
    }
  }
  squares += those;
  vec4 scale = LOAD_SCALES(first_scales, GROUP_SCALES(t) + scales_of[0]);
  return scale * (products - 8.0 * dot(total, vec4(1)));
}
#endif

// What a row that has been read is multiplied with: it has 32 elements for a texel of a line.
float row_scale() {
  return 1.0 / sqrt(dot(squares, vec4(1)) / float(32 * texels) + epsilon);
}

#define LAYER first_
#include "q4_layer.glsl"
#if MOST > 1
#define LAYER second_
#include "q4_layer.glsl"
#define LAYER third_
#include "q4_layer.glsl"
#endif

#define BEGIN(layer, number) \
  vec4 layer[TILE_N]; \
  float layer##_zero = number < layers ? layer##_ahead(i) : 0.0; \
  [[unroll]] for (int n = 0; n < TILE_N; n++) layer[n] = vec4(layer##_zero);
#define ADD(layer, number) if (number < layers) layer##_add(t, layer);
#define JOIN_TEAM(layer, number) if (number < layers) layer[0] = team_sum(layer[0]);
#define SCALE_ROW(layer, number) \
  [[unroll]] for (int n = 0; n < TILE_N; n++) layer[n] *= scale;
#define STORE_ONE(layer, number) \
  if (number < layers) \
    STORE(layer##_result, at, MASKED(layer##_ended(layer[n], z + n), z + n, columns));

void main() {
#if defined(TEAMS)
  find_team();
  bool is_there = team * TILE_N < result_Z();
  int i = team, z = is_there ? i * TILE_N : 0, end = is_there ? texels : 0;
#else
  int i = invocation(), z = by_words != 0 ? i : i * TILE_N, end = texels;
  // Lanes that hand the row round go on without columns of their own.
  if (LANES == 1 && z >= result_Z()) return;
#endif
  find_lines(z);
  EACH(BEGIN)
  SHARED(t, 0, end) {
#if MOST == 1 && LANES == 1 && !defined(TEAMS)
    if (by_words != 0) {
      first[0] += products_by_words(t);
      continue;
    }
#endif
    read_row(t);
    EACH(ADD)
  }
#if defined(TEAMS)
  EACH(JOIN_TEAM)
  if (has_norm != 0) squares = team_sum(squares);
  if (!is_there || member != 0) return;
#endif
  if (has_norm != 0) {
    float scale = row_scale();
    EACH(SCALE_ROW)
  }
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    // Not a break: V3D's compiler does not unroll a loop with one, and then the sums lie in memory.
    if (z + n < result_Z() && (by_words == 0 || n == 0)) {
      POSITION at = AT_ROW(0, z + n, result_X, result_Z());
#if MOST == 1
      vec4 v = with_residual(first_ended(first[n], z + n), at);
      STORE(first_result, at, MASKED(v, z + n, columns));
#else
      if (is_gated != 0) {
        vec4 u = first_ended(first[n], z + n);
        vec4 v = u * sigmoid_(u) * second_ended(second[n], z + n);
        STORE(first_result, at, MASKED(v, z + n, columns));
      } else {
        EACH(STORE_ONE)
      }
#endif
    }
  }
}
