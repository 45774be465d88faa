#version 450
//! storages: texel buffer texture3d
//! dtypes: i8:f32 i8:f16 u8:f32 u8:f16
#extension GL_GOOGLE_include_directive : require
// The real numbers that quantized ones of one scale and zero stand for.
#include "tensor.glsl"
#include "params.glsl"
#include "q8.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM_FLOAT(4, scale)
PARAM(5, zero)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  vec4 v = real_of(ivec4(LOAD(source, AT_LINEAR(i, X, Y, Z))), zero, scale);
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(REST_OF(i, Z), size)));
}
