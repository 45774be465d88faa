#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// One number everywhere.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

OUT(0, result)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
PARAM_FLOAT(4, number)
#else
PARAM(4, number)
#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(T4(number), REST_OF(i, Z), size));
}
