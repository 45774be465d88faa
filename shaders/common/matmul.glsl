// Rows times a matrix, with a register tile: one invocation computes TILE_M rows (pixels of a 1x1
// convolution, rows of a linear layer) times TILE_N texels of 4 columns of the result. The
// including shader defines both, or GEMV for one row.
//
// The matrix has one row for each column of the result and runs along the packed dimension, as
// torch's linear and convolution weights do, so that a sum is over whole texels on both sides.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"
#include "neighbours.glsl"

#ifdef GEMV
#define TILE_M 1
#define TILE_N 1
#endif

OUT(0, result)
IN(1, source)
#ifdef WEIGHT_8
IN_AS(2, matrix, i8)
#define LOAD_MATRIX(at) vec4(LOAD_AS(matrix, at, i8))
#else
WEIGHT(2, matrix)
#define LOAD_MATRIX(at) LOAD_WEIGHT(matrix, at)
#endif
// Rows of one batch; batches; texels of a row of the source, columns of the result.
PARAM(0, rows)
PARAM(1, batches)
PARAM(2, texels)
PARAM(3, columns)
// The grids' widths, which locate a row in an image.
PARAM(4, source_X)
PARAM(5, result_X)
// How many rows of the matrix each batch has to itself: `columns`, or 0 where all share it.
PARAM(6, batch_stride)
// The matrix is a tensor that another kernel has written.
CASE(7, is_computed)
// Whether the bias is `addend`, a tensor of the result's size, and not a vector (`has_bias`).
CASE(8, has_addend)
// result = alpha * source x matrix + beta * bias; of quantized tensors the plain product.
PARAM_FLOAT(9, alpha)
PARAM_FLOAT(10, beta)
#define VECTORS 3
#define ENDS 11
#include "ending.glsl"

#if defined(DTYPE_i8) || defined(DTYPE_i32)
#include "words.glsl"
#define NUMBER(m, v) source_of(v)
OUT4 finished(ivec4 sum, ENDING ending, POSITION at) { return ended(sum, ending); }
#else
#if defined(STORAGE_TEXTURE3D)
IN(4, addend)
#define BEHIND 5
#else
// At most one of them is there, and both are texels in their linear order.
#define addend bias
#define BEHIND 4
#endif
vec4 finished(vec4 sum, vec4 offset, POSITION at) {
  vec4 v = alpha * sum + (has_addend == 0 ? beta * offset : vec4(0));
  if (has_addend != 0) v += beta * LOAD(addend, at);
  return activated(v);
}
#endif

#ifdef WEIGHT_8
// What the rows of the matrix are multiplied with: texels in every storage, as a stage may have no
// more than 4 storage buffers.
TEXEL_IN(BEHIND, scales, DTYPE)
#define SCALED(v, z) ((v) * texelFetch(scales, z))
#else
#define SCALED(v, z) (v)
#endif

#if defined(STORAGE_TEXTURE3D)
#define NEXT(at, k) ivec3((at).xy, (at).z + (k))
#define MATRIX_AT(batch, row) \
  (is_computed != 0 ? ivec3(row, (batch_stride != 0 ? batch : 0), 0) \
                    : ivec3(0, (batch) * batch_stride + (row), 0))
#define MATRIX_NEXT(at, k) (is_computed != 0 ? ivec3((at).xy, k) : ivec3(k, (at).yz))
#else
#define NEXT(at, k) ((at) + (k))
#define MATRIX_AT(batch, row) (((batch) * batch_stride + (row)) * texels)
#define MATRIX_NEXT(at, k) ((at) + (k))
#endif

void main() {
  int i = invocation();
  int tiles = (rows + TILE_M - 1) / TILE_M;
  int blocks = (columns + 4 * TILE_N - 1) / (4 * TILE_N);
  if (i >= tiles * blocks * batches) return;
  bool is_constant = IS_CONSTANT(rows);
  ivec2 batch_place = divided(i, tiles * blocks, is_constant);
  int batch = batch_place.x;
  ivec2 place = neighbours(batch_place.y, tiles, blocks, is_constant);
  int first = place.x * TILE_M;
  int z = place.y * TILE_N;

  POSITION from[TILE_M];
  [[unroll]] for (int m = 0; m < TILE_M; m++)
    from[m] = AT_ROW(batch * rows + min(first + m, rows - 1), 0, source_X, texels);
  POSITION line[4 * TILE_N];
  [[unroll]] for (int n = 0; n < 4 * TILE_N; n++)
    line[n] = MATRIX_AT(batch, min(4 * z + n, columns - 1));

  T4 sum[TILE_M * TILE_N];
  [[unroll]] for (int k = 0; k < TILE_M * TILE_N; k++) sum[k] = T4(0);
#ifdef GEMV
  // One line of the matrix after the other: lines that are a power of two apart share the sets of
  // a cache, and all lanes times 4 of them at once do not fit (measured: 1.6 times slower).
  [[unroll]] for (int c = 0; c < 4; c++) {
    T4 products = T4(0);
    for (int k = 0; k < texels; k++) {
      T4 mine = LOAD(source, NEXT(from[0], k));
      T4 theirs = LOAD_MATRIX(MATRIX_NEXT(line[c], k));
#if defined(DTYPE_i32)
      [[unroll]] for (int part = 0; part < 4; part++)
        products += NUMBER(0, NUMBERS(mine, part)) * NUMBERS(theirs, part);
#else
      products += source_of(mine) * theirs;
#endif
    }
    sum[0][c] = product(products, T4(1));
  }
#else
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
    [[unroll]] for (int n = 0; n < TILE_N; n++) {
      [[unroll]] for (int c = 0; c < 4; c++) {
        T4 w = LOAD_MATRIX(MATRIX_NEXT(line[4 * n + c], k));
        [[unroll]] for (int m = 0; m < TILE_M; m++) sum[m * TILE_N + n][c] += product(v[m], w);
      }
    }
#endif
  }
#endif

  int result_texels = (columns + 3) / 4;
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    if (z + n >= result_texels) break;
    ENDING ending = ending_at(z + n);
    [[unroll]] for (int m = 0; m < TILE_M; m++) {
      // Rows beyond the last one are the last one: written again, they need no branch. What is added
      // may lie where the result does, and is added once.
      if (has_addend != 0 && first + m >= rows) break;
      POSITION at = AT_ROW(batch * rows + min(first + m, rows - 1), z + n, result_X, result_texels);
      T4 v = SCALED(sum[m * TILE_N + n], z + n);
      STORE(result, at, mask_padding(finished(v, ending, at), VALID(z + n, columns)));
    }
  }
}
