#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Up to 4 tensors one after another along the packed dimension, whose sizes need not be multiples
// of 4. The texels [first, first + texels) of each row of the result are written. In storage buffers
// they are up to 3: every device has 4 of those in a kernel, many have no more.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, a)
IN(2, b)
IN(3, c)
#if !defined(STORAGE_BUFFER)
IN(4, d)
#endif
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, first)
PARAM(5, texels)
// Where each begins in the packed dimension of the result (beyond its end: not used), and its Z.
PARAM(6, start_a)
PARAM(7, start_b)
PARAM(8, start_c)
PARAM(9, start_d)
PARAM(10, a_Z)
PARAM(11, b_Z)
PARAM(12, c_Z)
PARAM(13, d_Z)
// How many of them there are.
CASE(14, inputs)

T4 texel(int element, int row) {
#if !defined(STORAGE_BUFFER)
  if (inputs >= 4 && element >= start_d) {
    return LOAD(d, AT_ROW(row, ((element - start_d) >> 2), X, d_Z));
  }
#endif
  if (inputs >= 3 && element >= start_c) {
    return LOAD(c, AT_ROW(row, ((element - start_c) >> 2), X, c_Z));
  }
  if (inputs >= 2 && element >= start_b) {
    return LOAD(b, AT_ROW(row, ((element - start_b) >> 2), X, b_Z));
  }
  return LOAD(a, AT_ROW(row, ((element - start_a) >> 2), X, a_Z));
}

int lane_of(int element) {
  return (element - (element >= start_d ? start_d : element >= start_c ? start_c
                     : element >= start_b ? start_b : start_a)) & 3;
}

void main() {
  int i = invocation();
  if (i >= X * Y * texels) return;
  ivec2 row_texel = DIVIDED(i, texels);
  int z = first + row_texel.y;
  int row = row_texel.x;
  T4 v = T4(0);
  for (int lane = 0; lane < 4; lane++) {
    int element = 4 * z + lane;
    if (element < size) v[lane] = texel(element, row)[lane_of(element)];
  }
  STORE(result, AT_ROW(row, z, X, Z), mask_padding(v, VALID(z, size)));
}
