// Operands and parameters of products of rows with a matrix.
//
// The matrix has one row for each column of the result, a line, and runs along the packed dimension,
// as torch's linear and convolution weights do, so that a sum is over whole texels on both sides.
//
// How lines are stored is the matrix's format, a file: weights.glsl, for elements of the source's dtype,
// or what the including shader asks for by WEIGHT_8, WEIGHT_4 or WEIGHT_4_ANY. It has
//
//   its operands              at binding 2, and at 5 what numbers of few bits are multiplied with
//   MATRIX_AT(batch, column)  where a line begins, a LINE_POSITION
//   SCALED(v, z)              the sums of texel z of the result, times the scales of its columns
//   FETCHED, AT_ONCE          in register tiles (matmul.glsl): how many texels of the source meet what
//                             is fetched of a line, and how many of them are multiplied at once
//   FETCH(t)                  fetches what meets FETCHED texels from t on, of the lines that the
//                             invocation loads from
//   WEIGHTS(j, k, part, e)    of what was fetched of the j-th: what meets texel k + e of the source, the
//                             e-th of the AT_ONCE; part counts these from 0 on
//   GO_ON                     the next part follows
//   weights_at(line, k, column)   where workgroups share tiles (matmul_shared.glsl): what meets texel k
//                             of the source, of the line that begins there, of a column
//
// and where its lines are no texels of 4 elements, LINE_POSITION; IN_ORDER(v), a texel of the source with
// its elements in the order of the weights; RESIDUAL_IS_TEXELS, as scales are a storage buffer;
// ENDS_PLAINLY, as a bias and a residual are all that follows; and ONE_BATCH, as there is no other.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
IN(1, source)
#if defined(WEIGHT_4)
#include "weights_q4.glsl"
#elif defined(WEIGHT_4_ANY)
#include "weights_q4_any.glsl"
#elif defined(WEIGHT_8)
#include "weights_q8.glsl"
#else
#include "weights.glsl"
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
// Whether `residual`, a tensor of the result's size, is added too. Where more than that may follow it
// selects code; else layers with and without it share a pipeline.
#ifdef ENDS_PLAINLY
PARAM(8, has_residual)
#else
CASE(8, has_residual)
#endif
// result = alpha * source x matrix + beta * (bias + residual); of quantized tensors the product alone.
PARAM_FLOAT(9, alpha)
PARAM_FLOAT(10, beta)
#define VECTORS 3
#define ENDS 11
// So that a bias and a residual are no more than 4 storage buffers with the rest.
#define BIAS_IS_TEXELS
#include "epilogue.glsl"

#ifndef MATRIX_AT
#define LINE_POSITION POSITION
#define IN_ORDER(v) (v)
#if defined(STORAGE_TEXTURE3D)
#define MATRIX_AT(batch, row) \
  (is_computed != 0 ? ivec3(row, (batch_stride != 0 ? batch : 0), 0) \
                    : ivec3(0, (batch) * batch_stride + (row), 0))
#define MATRIX_NEXT(at, k) (is_computed != 0 ? ivec3((at).xy, k) : ivec3(k, (at).yz))
#else
#define MATRIX_AT(batch, row) (((batch) * batch_stride + (row)) * LINE_TEXELS)
#define MATRIX_NEXT(at, k) ((at) + (k))
#endif
T4 weights_at(LINE_POSITION line, int k, int column) { return LOAD_MATRIX(MATRIX_NEXT(line, k)); }
#endif

#if defined(DTYPE_i8) || defined(DTYPE_i32)
#include "words.glsl"
#define NUMBER(m, v) source_of(v)
OUT4 finished(ivec4 sum, EPILOGUE epilogue, POSITION at) { return ended(sum, epilogue); }
#else
#ifdef RESIDUAL_IS_TEXELS
ALIASED IN_TEXELS(4, residual)
#define LOAD_RESIDUAL(at) LOAD_TEXELS(residual, at)
#else
ALIASED IN(4, residual)
#define LOAD_RESIDUAL(at) LOAD(residual, at)
#endif
#ifdef ENDS_PLAINLY
vec4 finished(vec4 sum, vec4 offset, POSITION at) {
  vec4 v = sum + offset;
  if (has_residual != 0) v += LOAD_RESIDUAL(at);
  return v;
}
#else
// What ends the sum in the place of one of the activations of `activated`.
CASE(15, curve)
#define CURVE_GELU 1
#define CURVE_GELU_TANH 2
#define CURVE_SILU 3
#define CURVE_SIGMOID 4
#define CURVE_TANH 5
vec4 curved(vec4 v) {
  switch (curve) {
    case CURVE_GELU: return gelu_(v);
    case CURVE_GELU_TANH: return gelu_tanh_(v);
    case CURVE_SILU: return v * sigmoid_(v);
    case CURVE_SIGMOID: return sigmoid_(v);
    case CURVE_TANH: return tanh_(v);
  }
  return activated(v);
}
vec4 finished(vec4 sum, vec4 offset, POSITION at) {
  vec4 v = alpha * sum + (has_bias != 0 ? beta * offset : vec4(0));
  if (has_residual != 0) v += beta * LOAD_RESIDUAL(at);
  return curved(v);
}
#endif
#endif
