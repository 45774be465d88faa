#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Equal steps.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
#if defined(DTYPE_i32)
PARAM(4, start)
PARAM(5, stride)
T number(int i) { return start + i * stride; }
#else
PARAM_FLOAT(4, start)
PARAM_FLOAT(5, stride)
// Rounded once where the driver has a fused multiplication.
T number(int i) { return fma(float(i), stride, start); }
#endif

void main() {
  int z = invocation();
  if (z >= X * Y * Z) return;
  T4 v = T4(number(4 * z), number(4 * z + 1), number(4 * z + 2), number(4 * z + 3));
  STORE(result, AT_LINEAR(z, X, Y, Z), mask_padding(v, VALID(z, size)));
}
