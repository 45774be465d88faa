// Rows times a matrix (product.glsl), with a register tile: one invocation computes TILE_M rows (pixels
// of a 1x1 convolution, rows of a linear layer) times TILE_N texels of 4 columns of the result. The
// including shader defines both, or GEMV for one row.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "product.glsl"
#include "places.glsl"
#include "neighbours.glsl"
#include "shuffle.glsl"
#if defined(WEIGHT_8) && LANES > 1
#include "words.glsl"
#define HAS_WORDS
#endif

#ifdef GEMV
#define TILE_M 1
#define TILE_N 1
#endif

#if defined(GEMV) && LANES > 1

// Of a run of LANES texels of the row each lane loads one, and gets the others by shuffles.
void main() {
  int i = numbered();
  int blocks = ((columns + 3) / 4 + LANES - 1) / LANES;
  if (i >= LANES * blocks * batches) return;
  ivec2 batch_place = divided(i / LANES, blocks, IS_CONSTANT(columns));
  int batch = batch_place.x, z = batch_place.y * LANES + i % LANES;
  POSITION from = AT_ROW(batch, 0, source_X, texels);
  vec4 sum = vec4(0);
#ifdef HAS_WORDS
  int line[4];
  [[unroll]] for (int c = 0; c < 4; c++) line[c] = MATRIX_AT(batch, min(4 * z + c, columns - 1));
  vec4 products[4];
  [[unroll]] for (int c = 0; c < 4; c++) products[c] = vec4(0);
  for (int k = 0; k < texels; k += LANES) {
    vec4 own = LOAD(source, NEXT(from, min(k + lane(), texels - 1)));
    // Zeros behind the end, where lines have something again.
    own = k + lane() < texels ? own : vec4(0);
    [[unroll]] for (int part = 0; part < LANES / 4; part++) {
      vec4 row[4];
      [[unroll]] for (int j = 0; j < 4; j++) row[j] = HANDED(own, 4 * part + j);
      [[unroll]] for (int c = 0; c < 4; c++) {
        ivec4 words = LOAD_MATRIX(line[c] + min((k >> 2) + part, LINE_TEXELS - 1));
        [[unroll]] for (int j = 0; j < 4; j++) products[c] += row[j] * vec4(NUMBERS(words, j));
      }
    }
  }
  [[unroll]] for (int c = 0; c < 4; c++) sum[c] = sum_of(products[c]);
#else
  // One line of the matrix after the other, as below; not unrolled, for the time that compiling takes.
  for (int c = 0; c < 4; c++) {
    POSITION line = MATRIX_AT(batch, min(4 * z + c, columns - 1));
    vec4 products = vec4(0);
    int k = 0;
    for (; k + LANES <= texels; k += LANES) {
      vec4 own = LOAD(source, NEXT(from, k + lane()));
      [[unroll]] for (int j = 0; j < LANES; j++)
        products += HANDED(own, j) * LOAD_MATRIX(MATRIX_NEXT(line, k + j));
    }
    for (; k < texels; k++)
      products += LOAD(source, NEXT(from, k)) * LOAD_MATRIX(MATRIX_NEXT(line, k));
    sum = vec4(sum.yzw, sum_of(products));
  }
#endif
  if (z >= (columns + 3) / 4) return;
  POSITION at = AT_ROW(batch, z, result_X, (columns + 3) / 4);
  STORE(result, at, mask_padding(finished(SCALED(sum, z), epilogue_at(z), at), VALID(z, columns)));
}

#else

void main() {
  int i = numbered();
  // Of LANES invocations each.
  int tiles = (rows + LANES * TILE_M - 1) / (LANES * TILE_M);
  int blocks = (columns + 4 * TILE_N - 1) / (4 * TILE_N);
  if (i >= LANES * tiles * blocks * batches) return;
  bool is_constant = IS_CONSTANT(rows);
  ivec2 batch_place = divided(i / LANES, tiles * blocks, is_constant);
  int batch = batch_place.x;
  ivec2 place = neighbours(batch_place.y, tiles, blocks, is_constant);
  int first = (place.x * LANES + i % LANES) * TILE_M;
  int z = place.y * TILE_N;

  ivec2 parts = batch_parts(batch);
  int result_texels = (columns + 3) / 4;
  POSITION from[TILE_M];
  [[unroll]] for (int m = 0; m < TILE_M; m++)
    from[m] = source_at(batch, parts, min(first + m, rows - 1));
  T4 sum[TILE_M * TILE_N];
  [[unroll]] for (int k = 0; k < TILE_M * TILE_N; k++) sum[k] = T4(0);
#ifdef GEMV
  // One line of the matrix after the other: lines that are a power of two apart share the sets of
  // a cache, and all lanes times 4 of them at once do not fit (measured: 1.6 times slower). Not
  // unrolled: 32 registers are enough then.
  for (int c = 0; c < 4; c++) {
    POSITION line = line_at(batch, parts, min(4 * z + c, columns - 1));
    T4 products = T4(0);
    for (int k = 0; k < texels; k++) {
      T4 mine = LOAD(source, NEXT(from[0], k));
      T4 theirs = LOAD_MATRIX(MATRIX_NEXT(line, k));
#if defined(DTYPE_i32)
      [[unroll]] for (int part = 0; part < 4; part++)
        products += NUMBER(0, NUMBERS(mine, part)) * NUMBERS(theirs, part);
#else
      products += source_of(mine) * theirs;
#endif
    }
    sum[0] = T4(sum[0].yzw, sum_of(products));
  }
#else
  POSITION line[LINES(4 * TILE_N)];
  if (lies < ACROSS) {
    [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++)
      line[j] = line_at(batch, parts, min(4 * z + LINE(j), columns - 1));
  }
#ifdef HAS_WORDS
  ivec4 words[LINES(4 * TILE_N)];
#define TEXEL_ALONG(j) vec4(NUMBERS(words[j], k & 3))
#else
#define TEXEL_ALONG(j) LOAD_MATRIX(MATRIX_NEXT(line[j], k))
#endif
  for (int k = 0; k < texels; k++) {
#if defined(DTYPE_i32)
    ivec4 mine[TILE_M], theirs[4 * TILE_N];
    [[unroll]] for (int m = 0; m < TILE_M; m++) mine[m] = LOAD(source, NEXT(from[m], k));
    [[unroll]] for (int n = 0; n < 4 * TILE_N; n++)
      theirs[n] = LOAD_WEIGHT(matrix, MATRIX_NEXT(line[n], k));
    ADD_WORDS(sum, mine, theirs, TILE_M, TILE_N, NUMBER)
#else
    T4 v[TILE_M];
    [[unroll]] for (int m = 0; m < TILE_M; m++) v[m] = source_of(LOAD(source, NEXT(from[m], k)));
    if (lies >= ACROSS) {
      // Texels of row 4 k, of the next row and so on.
#define TEXEL_ACROSS(j) \
  across(parts, 4 * k + LINE(j) / TILE_N, min(z + LINE(j) % TILE_N, result_texels - 1))
      TEXELS_OF(texel, 4 * TILE_N, TEXEL_ACROSS)
      [[unroll]] for (int c = 0; c < 4; c++) {
        [[unroll]] for (int n = 0; n < TILE_N; n++) {
          T4 w = TEXEL_OF(texel, c * TILE_N + n, TEXEL_ACROSS);
          [[unroll]] for (int m = 0; m < TILE_M; m++) sum[m * TILE_N + n] += v[m][c] * w;
        }
      }
      continue;
    }
#ifdef HAS_WORDS
    if ((k & 3) == 0) {
      [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++)
        words[j] = LOAD_MATRIX(line[j] + (k >> 2));
    }
#endif
    TEXELS_OF(texel, 4 * TILE_N, TEXEL_ALONG)
    [[unroll]] for (int n = 0; n < TILE_N; n++) {
      [[unroll]] for (int c = 0; c < 4; c++) {
        T4 w = TEXEL_OF(texel, 4 * n + c, TEXEL_ALONG);
        [[unroll]] for (int m = 0; m < TILE_M; m++) sum[m * TILE_N + n][c] += product(v[m], w);
      }
    }
#endif
  }
#endif

  // Lanes that only had weights to hand round.
  if (LANES > 1 && first >= rows) return;
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_texels) break;
    EPILOGUE epilogue = epilogue_at(z + n);
    [[unroll]] for (int m = 0; m < TILE_M; m++) {
      // Rows beyond the last one are the last one: written again, they need no branch. What is added
      // may lie where the result does, and is added once.
      if (has_residual != 0 && first + m >= rows) break;
      POSITION at = result_at(batch, parts, min(first + m, rows - 1), z + n);
      T4 v = SCALED(sum[m * TILE_N + n], z + n);
      STORE(result, at, mask_padding(finished(v, epilogue, at), VALID(z + n, columns)));
    }
  }
}

#endif
