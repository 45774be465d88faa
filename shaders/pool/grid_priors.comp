#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The places (x, y) of a grid's cells, a row for each, `columns` cells one after the other.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, columns)
PARAM_FLOAT(4, stride)
PARAM_FLOAT(5, offset)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  vec2 cell = vec2(DIVIDED(i, columns).yx);
  STORE(result, AT_LINEAR(i, X, Y, Z), vec4((cell + offset) * stride, 0, 0));
}
