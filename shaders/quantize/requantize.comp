#version 450
//! storages: texel buffer texture3d
//! dtypes: i8
#extension GL_GOOGLE_include_directive : require
// Quantized numbers under another scale and zero, limited to a range in between.
#include "tensor.glsl"
#include "params.glsl"
#include "q8.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, zero)
PARAM_FLOAT(5, scale)
PARAM_FLOAT(6, low)
PARAM_FLOAT(7, high)
PARAM_FLOAT(8, inverse)
PARAM(9, new_zero)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 q = requantized(LOAD(source, AT_LINEAR(i, X, Y, Z)), zero, scale, low, high, inverse,
                        new_zero);
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(q, VALID(REST_OF(i, Z), size)));
}
