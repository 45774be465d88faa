// Operands and parameters of products of rows with a matrix.
//
// The matrix has one row for each column of the result and runs along the packed dimension, as
// torch's linear and convolution weights do, so that a sum is over whole texels on both sides.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
IN(1, source)
#if defined(WEIGHT_8) && defined(FEATURE_SHUFFLE)
// Words of 4 numbers: a texel of the matrix meets 4 of the source.
IN_AS(2, matrix, i32)
#define LOAD_MATRIX(at) LOAD_AS(matrix, at, i32)
#define LINE_TEXELS (texels >> 2)
#elif defined(WEIGHT_8)
IN_AS(2, matrix, i8)
#define LOAD_MATRIX(at) vec4(LOAD_AS(matrix, at, i8))
#else
WEIGHT(2, matrix)
#define LOAD_MATRIX(at) LOAD_WEIGHT(matrix, at)
#endif
#ifndef LINE_TEXELS
#define LINE_TEXELS texels
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
// Whether `residual`, a tensor of the result's size, is added too.
CASE(8, has_residual)
// result = alpha * source x matrix + beta * (bias + residual); of quantized tensors the product alone.
PARAM_FLOAT(9, alpha)
PARAM_FLOAT(10, beta)
#define VECTORS 3
#define ENDS 11
// So that a bias and a residual are no more than 4 storage buffers with the rest.
#define BIAS_IS_TEXELS
#include "epilogue.glsl"

#if defined(DTYPE_i8) || defined(DTYPE_i32)
#include "words.glsl"
#define NUMBER(m, v) source_of(v)
OUT4 finished(ivec4 sum, EPILOGUE epilogue, POSITION at) { return ended(sum, epilogue); }
#else
ALIASED IN(4, residual)
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
  if (has_residual != 0) v += beta * LOAD(residual, at);
  return curved(v);
}
#endif

#ifdef WEIGHT_8
// What the rows of the matrix are multiplied with: texels in every storage, as a stage may have no
// more than 4 storage buffers.
TEXEL_IN(5, scales, DTYPE)
#define SCALED(v, z) ((v) * texelFetch(scales, z))
#else
#define SCALED(v, z) (v)
#endif

#if defined(STORAGE_TEXTURE3D)
#define MATRIX_AT(batch, row) \
  (is_computed != 0 ? ivec3(row, (batch_stride != 0 ? batch : 0), 0) \
                    : ivec3(0, (batch) * batch_stride + (row), 0))
#define MATRIX_NEXT(at, k) (is_computed != 0 ? ivec3((at).xy, k) : ivec3(k, (at).yz))
#else
#define MATRIX_AT(batch, row) (((batch) * batch_stride + (row)) * LINE_TEXELS)
#define MATRIX_NEXT(at, k) ((at) + (k))
#endif
