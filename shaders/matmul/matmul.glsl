// Rows times a matrix (product.glsl), with a register tile: one invocation computes TILE_M rows (pixels
// of a 1x1 convolution, rows of a linear layer) times TILE_N texels of 4 columns of the result. The
// including shader defines both, or GEMV for one row. Who loads a weight unpacks it, and in variants
// for the feature shuffle 8 lanes do that for each other.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "product.glsl"
#include "places.glsl"
#include "neighbours.glsl"
#include "shuffle.glsl"

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

// What the invocation makes: its batch, and the first row and texel of columns of its tile.
int batch, first, z;
ivec2 parts;
POSITION row_begin(int m) { return source_at(batch, parts, min(first + m, rows - 1)); }
LINE_POSITION line_begin(int j) {
  return line_at(batch, parts, min(4 * z + LINE(j), columns - 1));
}
#if AT_ONCE > 1 && TILE_N == 1
// Both are found anew each time: held, they are registers too many (Mali's compiler spills 2 to 5).
#define ROW_AT(m) row_begin(m)
#define LINE_AT(j) line_begin(j)
#else
#define HOLDS_PLACES
POSITION from[TILE_M];
LINE_POSITION line[LINES(4 * TILE_N)];
#define ROW_AT(m) from[m]
#define LINE_AT(j) line[j]
#endif
// What lines meet of the source at once, and the products of that with row m.
#if AT_ONCE == 1
#define LINE_TEXELS_AT_ONCE(n) T4 w = TEXEL_OF(texel, n, TEXEL_ALONG);
#define PRODUCTS(m) product(v[m], w)
#else
#define LINE_TEXELS_AT_ONCE(n) \
  T4 w = TEXEL_OF(texel, n, TEXEL_ALONG), next = TEXEL_OF(texel, 4 * TILE_N + n, TEXEL_ALONG);
#define PRODUCTS(m) (product(v[2 * m], w) + product(v[2 * m + 1], next))
#endif
#if FETCHED == AT_ONCE
#define EACH_PART const int part = 0;
#else
// Not unrolled here, as that would be many words. Drivers see how often it goes round and unroll it
// (where they did not a prompt took 1.1 times as long on lavapipe).
#define EACH_PART for (int part = 0; part < FETCHED / AT_ONCE; part++)
#endif

void main() {
  int i = numbered();
  // Of LANES invocations each.
  int tiles = (rows + LANES * TILE_M - 1) / (LANES * TILE_M);
  int blocks = (columns + 4 * TILE_N - 1) / (4 * TILE_N);
  if (i >= LANES * tiles * blocks * batches) return;
  bool is_constant = IS_CONSTANT(rows);
#ifdef ONE_BATCH
  ivec2 batch_place = ivec2(0, i / LANES);
#else
  ivec2 batch_place = divided(i / LANES, tiles * blocks, is_constant);
#endif
  batch = batch_place.x;
  ivec2 place = neighbours(batch_place.y, tiles, blocks, is_constant);
  first = (place.x * LANES + i % LANES) * TILE_M;
  z = place.y * TILE_N;

  parts = batch_parts(batch);
  int result_texels = (columns + 3) / 4;
#ifdef HOLDS_PLACES
  [[unroll]] for (int m = 0; m < TILE_M; m++) from[m] = row_begin(m);
#endif
  T4 sum[TILE_M * TILE_N];
  [[unroll]] for (int k = 0; k < TILE_M * TILE_N; k++) sum[k] = T4(0);
#ifdef GEMV
  // One line of the matrix after the other: lines that are a power of two apart share the sets of
  // a cache, and all lanes times 4 of them at once do not fit (measured: 1.6 times slower). Not
  // unrolled: 32 registers are enough then.
  for (int c = 0; c < 4; c++) {
    LINE_POSITION line = line_at(batch, parts, min(4 * z + c, columns - 1));
    T4 products = T4(0);
    for (int k = 0; k < texels; k++) {
      T4 source_texel = LOAD(source, NEXT(from[0], k));
      T4 weight_texel = LOAD_MATRIX(MATRIX_NEXT(line, k));
#if defined(DTYPE_i32)
      [[unroll]] for (int part = 0; part < 4; part++)
        products += NUMBER(0, NUMBERS(source_texel, part)) * NUMBERS(weight_texel, part);
#else
      products += source_of(source_texel) * weight_texel;
#endif
    }
    sum[0] = T4(sum[0].yzw, sum_of(products));
  }
#else
#ifdef HOLDS_PLACES
  if (lies < ACROSS) {
    [[unroll]] for (int j = 0; j < LINES(4 * TILE_N); j++) line[j] = line_begin(j);
  }
#endif
  for (int t = 0; t < texels; t += FETCHED) {
#if defined(DTYPE_i32)
    ivec4 source_words[TILE_M], weight_words[4 * TILE_N];
    [[unroll]] for (int m = 0; m < TILE_M; m++) source_words[m] = LOAD(source, NEXT(from[m], t));
    [[unroll]] for (int n = 0; n < 4 * TILE_N; n++) weight_words[n] = WEIGHTS(n, t, 0, 0);
    ADD_WORDS(sum, source_words, weight_words, TILE_M, TILE_N, NUMBER)
#else
    FETCH(t)
    EACH_PART {
      int k = t + AT_ONCE * part;
      T4 v[AT_ONCE * TILE_M];
      [[unroll]] for (int m = 0; m < AT_ONCE * TILE_M; m++)
        v[m] = source_of(IN_ORDER(LOAD(source, NEXT(ROW_AT(m / AT_ONCE), k + m % AT_ONCE))));
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
      // Of all lines the first of the texels at once, then of all the second.
#define TEXEL_ALONG(j) WEIGHTS((j) % LINES(4 * TILE_N), k, part, (j) / LINES(4 * TILE_N))
      TEXELS_OF(texel, AT_ONCE * 4 * TILE_N, TEXEL_ALONG)
      [[unroll]] for (int n = 0; n < 4 * TILE_N; n++) {
        LINE_TEXELS_AT_ONCE(n)
        [[unroll]] for (int m = 0; m < TILE_M; m++)
          sum[m * TILE_N + n / 4][n % 4] += PRODUCTS(m);
      }
      GO_ON
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
      // What is added may lie where the result does, and is added once. Else rows beyond the last one
      // are the last one: written again, they need no branch.
#ifdef ENDS_PLAINLY
      if (first + m < rows)
#else
      // Such a loop is not unrolled before the driver has it, which is meant: long ends are many words.
      if (has_residual != 0 && first + m >= rows) break;
#endif
      {
        POSITION at = result_at(batch, parts, min(first + m, rows - 1), z + n);
        T4 v = SCALED(sum[m * TILE_N + n], z + n);
        STORE(result, at, mask_padding(finished(v, epilogue, at), VALID(z + n, columns)));
      }
    }
  }
}

#endif
