#version 450
//! storages: texel buffer texture3d
//! dtypes: i32
#extension GL_GOOGLE_include_directive : require
// Products of matrices of whole numbers, modulo 2^32: rows of [batches, rows, depth] times matrices
// [batches, depth, columns], all row-major.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN(2, matrix)
PARAM(0, rows)
PARAM(1, batches)
PARAM(2, depth)
PARAM(3, columns)

void main() {
  int i = invocation();
  int texels = (columns + 3) / 4, source_texels = (depth + 3) / 4;
  if (i >= batches * rows * texels) return;
  int row = i / texels;
  int z = i - row * texels;
  int line = QUOTIENT(row, rows) * depth;
  T4 sum = T4(0);
  for (int k = 0; k < source_texels; k++) {
    T4 v = LOAD(source, AT_ROW(row, k, rows, source_texels));
    int valid = VALID(k, depth);
    for (int lane = 0; lane < valid; lane++)
      sum += v[lane] * LOAD(matrix, AT_ROW(line + 4 * k + lane, z, depth, texels));
  }
  STORE(result, AT_ROW(row, z, rows, texels), sum);
}
